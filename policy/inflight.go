package policy

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// slotRule is a rule with the field in-flight. Its limiter is one of its own: a request takes
// the slots of all such rules that apply, then its hits, and gives the slots back if it is
// denied.
type slotRule struct {
	policy  *enforcedPolicy
	rule    *enforcedRule
	limiter *inflight.Limiter
}

// slotConfig returns the configuration of the limiter of a rule with in-flight.
func (f *enforcedFile) slotConfig(p *enforcedPolicy, rule *enforcedRule) inflight.Config {
	return inflight.Config{
		Name: f.Name + "." + rule.Counters, Max: *rule.InFlight, Key: rule.identify,
		Hooks: &hooks{enforcedFile: f}, Log: f.options.log, Observer: f.options.observer,
		MaxWait: p.wait, MaxWaiters: f.Local.MaxWaitingOfKey, MaxWaitersTotal: f.Local.MaxWaiting,
	}
}

// buildSlots makes the limiters of the rules with in-flight, or changes those that there are.
func (s *Set) buildSlots(m *mistakes, f *enforcedFile) {
	for _, p := range f.policies {
		for _, rule := range p.rules {
			if rule.InFlight == nil {
				continue
			}
			c := f.slotConfig(p, rule)
			l := s.slots[c.Name]
			var err error
			if l != nil {
				err = l.Reconfigure(c)
			} else if c.Store, err = s.slotStore(p); err == nil {
				l, err = inflight.New(c)
			}
			if err != nil {
				m.add(p.At(), words.Reason(err), "")
				return
			}
			s.slots[c.Name], f.byRule[c.Name] = l, p
			f.slots = append(f.slots, slotRule{p, rule, l})
		}
	}
}

// slotStore returns the store that keeps the slots of a policy, nil for this process.
func (s *Set) slotStore(p *enforcedPolicy) (inflight.Store, error) {
	shared := s.shared.slots
	if s.options.store != nil {
		shared, _ = s.options.store.(inflight.Store)
	}
	if !p.Shared && s.options.store == nil || s.options.store != nil && !s.options.store.Guarantees().Shared {
		return nil, nil
	}
	if shared == nil {
		return nil, fmt.Errorf("%w: in-flight: the store keeps no slots (%T): give policy.WithStore a redisstore.Store, or write counting: local", core.ErrConfig, s.options.store)
	}
	return shared, nil
}

// heldSlots are the slots that a request holds: the note of its decision.
type heldSlots []heldSlot

type heldSlot struct {
	limiter  *inflight.Limiter
	request  core.Request
	decision core.Decision
}

func (held heldSlots) release() {
	for _, h := range held {
		h.limiter.Settle(h.request, h.decision, core.Outcome{})
	}
}

// checkSlots takes the slots of a request. denied is the decision of a rule that has none left,
// nil if there was one of each; then held are those that the request holds.
func (f *enforcedFile) checkSlots(q *request) (held heldSlots, denied *core.Decision) {
	taken := false
	defer func() {
		if !taken {
			held.release()
		}
	}()
	for _, s := range f.slots {
		if !q.memo.asks(s.policy.Name) || s.policy.verdict(q) != matches || s.policy.denies(q) {
			continue
		}
		d := s.limiter.Check(q)
		if !d.Allowed {
			return held, &d
		}
		if d.NeedsOutcome() {
			held = append(held, heldSlot{s.limiter, q, d})
		}
	}
	taken = true
	return held, nil
}
