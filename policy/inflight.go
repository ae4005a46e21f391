package policy

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// slotPolicy is a policy with the field in-flight. It has a limiter of its own: see [Set.Check].
type slotPolicy struct {
	*enforcedPolicy
	limiter *inflight.Limiter // nil: the file is not in force yet
}

// slotsOf identifies the limiter of a policy with in-flight. If the field counting changes,
// the policy gets another limiter.
type slotsOf struct {
	name   string
	shared bool
}

// slotConfig returns the configuration of the limiter of a policy with in-flight.
func (s *Set) slotConfig(f *enforcedFile, p *enforcedPolicy) inflight.Config {
	c := inflight.Config{
		Name: f.Name + "." + p.Name, Max: *p.InFlight, Key: p.identify,
		Hooks: &hooks{enforcedFile: f}, Log: f.options.log, Observer: f.options.observer,
		MaxWait: p.wait, MaxWaiters: f.Local.MaxWaitingOfKey,
	}
	switch store := f.options.store; {
	case store == nil && p.Shared:
		c.Store = s.shared.slots
	case store != nil && store.Guarantees().Shared:
		c.Store, _ = store.(inflight.Store)
	}
	return c
}

// trySlots finds what is wrong with the policies with in-flight, without asking a store.
func (s *Set) trySlots(m *mistakes, f *enforcedFile) {
	for i := range f.slots {
		p := f.slots[i].enforcedPolicy
		c := s.slotConfig(f, p)
		hint := "slots are named after the file and the policy"
		if store := f.options.store; store != nil && store.Guarantees().Shared && c.Store == nil {
			m.add(p.At(), fmt.Sprintf("in-flight: the store keeps no slots: %T", store), "give policy.WithStore a redisstore.Store")
		}
		if other := f.byRule[c.Name]; other != nil {
			m.add(p.At(), "in-flight: the name "+c.Name+" is taken by the policy "+other.Name, hint)
		}
		f.byRule[c.Name] = p
		c.Store, c.Observer = nil, nil
		if _, err := inflight.New(c); err != nil {
			m.add(p.At(), "in-flight: "+words.Reason(err), hint)
		}
	}
}

// buildSlots makes the limiters of the policies with in-flight, or changes those that there are:
// slots that are held stay held.
func (s *Set) buildSlots(f *enforcedFile) (err error) {
	for i := range f.slots {
		c := s.slotConfig(f, f.slots[i].enforcedPolicy)
		of := slotsOf{c.Name, c.Store != nil}
		l := s.slots[of]
		if l != nil {
			err = l.Reconfigure(c)
		} else {
			l, err = inflight.New(c)
		}
		if err != nil {
			return err
		}
		s.slots[of], f.slots[i].limiter = l, l
	}
	return nil
}

// applies reports whether a request takes a slot. A request from a denied address takes none.
func (s *slotPolicy) applies(q *request) bool {
	return q.asks(s.Name) && s.verdict(q) == matches && !s.denies(q)
}

// heldSlots are the slots that a request holds: the note of its decision.
type heldSlots []heldSlot

type heldSlot struct {
	limiter  *inflight.Limiter
	decision core.Decision
}

func (held heldSlots) release(r core.Request) {
	for _, h := range held {
		h.limiter.Settle(r, h.decision, core.Outcome{})
	}
}

// InFlight returns the limiters of the policies with the field in-flight, in the order of the
// file. Each is named after the file and the policy, with a dot between.
func (s *Set) InFlight() []*inflight.Limiter {
	var all []*inflight.Limiter
	for _, slot := range s.current.Load().slots {
		all = append(all, slot.limiter)
	}
	return all
}
