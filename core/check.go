package core

import (
	"errors"
	"fmt"
)

// Check implements [Checker]. It asks, in this order: ShouldLimit; KeyExtra,
// Cost and the rules' keys, of which those that read the body wait; where some
// do, whether the keys known so far refuse the request already, in which case
// the body is never read; the keys that wait. Then it takes from all counters
// at once.
func (l *Limiter) Check(r Request) (d Decision) {
	s := l.current.Load()
	if !s.hooks.ShouldLimit(r) {
		d.Allowed, d.Reason, d.Limiter = true, Skipped, s.name
		d.detail.snap = s
		l.release(l.session(s), &d)
		return d
	}
	c := l.session(s)
	c.check(r, &d, false)
	if s.rehearsal && !d.Allowed {
		d.Rehearsal = true
		s.hooks.OnDisallowed(r, d)
		d.Allowed = true
	}
	l.release(c, &d)
	if !d.Allowed && d.Reason == BadRequest && d.NeedsOutcome() {
		l.Settle(r, d, Outcome{Status: statusBadRequest})
	}
	return d
}

// Preview gives the decision that Check would give now. It charges nothing,
// calls no OnDisallowed and does not count in Stats.
func (l *Limiter) Preview(r Request) (d Decision) {
	s := l.current.Load()
	if !s.hooks.ShouldLimit(r) {
		d.Allowed, d.Reason, d.Limiter = true, Skipped, s.name
		d.detail.snap = s
		return d
	}
	c := l.session(s)
	c.check(r, &d, true)
	if s.rehearsal && !d.Allowed {
		d.Rehearsal, d.Allowed = true, true
	}
	l.release(c, nil)
	return d
}

// check decides on a request and writes the decision into d.
func (c *session) check(r Request, d *Decision, peek bool) {
	a := asking{session: c}
	c.probe = bodyProbe{Request: r, snap: c.snap}
	a.known(&c.probe)
	if a.fault == nil && a.waiting() {
		if len(c.items) > 0 && !a.extraWaits {
			if err := c.take(r.Context(), true); err != nil {
				c.fail(d, err)
				if !peek {
					c.reportStore(r.Context(), "check", err)
				}
				return
			}
			if !c.batch.Allowed {
				c.decide(d)
				c.remember(d, true, nil)
				return
			}
		}
		c.probe.open = true
		a.rest(&c.probe)
	}
	if a.fault != nil {
		c.fail(d, a.fault)
		if !peek {
			c.failures.report(r.Context(), c.snap, a.kind, "check", a.rule, a.fault)
		}
		return
	}
	if len(c.items) > 0 {
		if err := c.take(r.Context(), peek); err != nil {
			c.fail(d, err)
			if !peek {
				c.reportStore(r.Context(), "check", err)
			}
			return
		}
	}
	c.decide(d)
	c.remember(d, peek, nil)
	if a.bad != nil && d.Allowed {
		d.Allowed, d.Reason, d.Err = false, BadRequest, a.bad
	}
}

// asking gathers a request's extra, cost and keys, in two passes.
type asking struct {
	*session
	extra      string
	extraWaits bool
	costWaits  bool
	waits      uint64 // one bit for each rule whose key waits for the body
	bad        error  // the request is at fault: the other keys are charged all the same
	fault      error  // something else is wrong: nothing is charged
	kind       failureKind
	rule       string // whose key function is at fault
}

func (a *asking) waiting() bool { return a.extraWaits || a.costWaits || a.waits != 0 }

// known asks for all that needs no body.
func (a *asking) known(p *bodyProbe) {
	a.cost = 1
	if !a.snap.plain {
		a.extraWaits = a.asked(p, aHook, a.askExtra)
		a.costWaits = a.asked(p, aHook, a.askCost)
	}
	for i := range a.snap.rules {
		if a.extraWaits || a.fault != nil {
			a.waits |= 1 << i
			continue
		}
		if a.asked(p, i, func(r Request) error { return a.askKey(r, i) }) {
			a.waits |= 1 << i
		}
	}
}

// rest asks for what known has left.
func (a *asking) rest(r Request) {
	if a.extraWaits {
		a.note(aHook, a.askExtra(r))
	}
	if a.costWaits {
		a.note(aHook, a.askCost(r))
		for i := range a.items {
			a.items[i].Cost = a.cost
		}
	}
	for i := range a.snap.rules {
		if a.waits&(1<<i) != 0 && a.fault == nil {
			a.note(i, a.askKey(r, i))
		}
	}
}

// asked calls f with a request without body and says whether it wanted one. An
// answer that was given without is no answer.
func (a *asking) asked(p *bodyProbe, rule int, f func(Request) error) (waits bool) {
	p.wanted = false
	items, keys, cost, extra := len(a.items), len(a.keys), a.cost, a.extra
	err := f(p)
	if p.wanted {
		a.items, a.spans, a.keys = a.items[:items], a.spans[:items], a.keys[:keys]
		a.cost, a.extra = cost, extra
		return true
	}
	a.note(rule, err)
	return false
}

// aHook stands for a rule where an error is that of a hook.
const aHook = -1

// note sorts an error, of a rule's key function or a hook, by what follows from
// it.
func (a *asking) note(rule int, err error) {
	switch {
	case err == nil:
	case errors.Is(err, ErrBadRequest):
		if a.bad == nil {
			a.bad = err
		}
	case a.fault == nil:
		a.fault, a.kind, a.rule = err, hookFailure, ""
		if rule >= 0 {
			a.kind, a.rule = keyFailure, a.snap.rules[rule].Name
		}
	}
}

func (a *asking) askExtra(r Request) (err error) {
	if a.extra, err = a.snap.hooks.KeyExtra(r); err != nil {
		return fmt.Errorf("KeyExtra: %w", err)
	}
	return nil
}

func (a *asking) askCost(r Request) error {
	cost, err := a.snap.hooks.Cost(r)
	if err == nil && cost < 0 {
		err = fmt.Errorf("%d: %w", cost, ErrNegativeCost)
	}
	if err != nil {
		return fmt.Errorf("Cost: %w", err)
	}
	a.cost = cost
	return nil
}

func (a *asking) askKey(r Request, rule int) error {
	from := len(a.keys)
	// The key function gets an empty slice with room behind it: whatever it
	// does with it, the keys of other rules stay.
	key, err := a.snap.rules[rule].Key(a.keys[from:from], r)
	switch {
	case err == nil:
		a.keys = closeKey(append(a.keys[:from], key...), from, a.extra)
		a.addItem(rule, from, a.cost)
	case errors.Is(err, SkipRule):
	case errors.Is(err, errBodyLater):
		return err // nobody will read it
	default:
		return fmt.Errorf("key of rule %q: %w", a.snap.rules[rule].Name, err)
	}
	return nil
}

// Deny implements [Checker]: it asks Hooks.OnDisallowed.
func (l *Limiter) Deny(r Request, d Decision) Denial {
	s := l.current.Load()
	if d.detail.snap != nil {
		s = d.detail.snap
	}
	if s.plain {
		return d.denial() // as DefaultHooks does
	}
	den := s.hooks.OnDisallowed(r, d)
	if den.Status < 200 || den.Status > 599 {
		den.Status = d.status()
	}
	den.matchType()
	return den
}
