package core

import (
	"errors"
	"log/slog"
)

// Check implements [Checker]. It calls ShouldLimit, then KeyExtra, Cost and the
// rules' key functions. Those that read the body are called again later: first
// the store is asked, without a charge, whether the keys known so far deny the
// request. If they do, the body is not read. In the end, one Take charges all
// counters.
func (l *Limiter) Check(r Request) (d Decision) {
	s := l.current.Load()
	settled, told := true, false
	defer func() {
		if !settled { // a hook has panicked: nobody will settle the decision
			l.releaser(&d)()
		}
		if !told {
			l.lost(s, r, &d)
		}
	}()
	if !s.hooks.ShouldLimit(r) {
		d.Allowed, d.Reason, d.Limiter = true, ReasonSkipped, s.name
		d.detail.snap = s
		l.release(l.session(s), &d)
		told = true
		if s.observer != nil {
			s.observer.decided(r.Context(), &d)
		}
		return d
	}
	c := l.session(s)
	a := asking{session: c}
	if s.waits {
		a.lines = &l.lines
	}
	a.check(r, &d)
	settled = !s.leases
	if !d.Allowed && d.RetryAfter == Never {
		s.aboveQuota(r, &d)
	}
	if s.dryRun && !d.Allowed {
		d.DryRun = true
		s.hooks.OnDisallowed(r, d)
		d.Allowed = true
	}
	if a.counted {
		l.release(c, nil)
	} else {
		l.release(c, &d)
	}
	told = true
	if s.observer != nil {
		s.observer.decided(r.Context(), &d)
	}
	if !d.Allowed && d.Reason == ReasonBadRequest && d.NeedsOutcome() {
		l.Settle(r, d, Outcome{Status: statusBadRequest})
	}
	settled = true
	return d
}

// aboveQuota logs once that a request costs more than a quota: no waiting helps its client.
func (s *snapshot) aboveQuota(r Request, d *Decision) {
	if d.Limit.Quota == 0 || d.Cost <= d.Limit.Capacity() || !s.saidAboveQuota.CompareAndSwap(false, true) {
		return // a quota of 0 denies everything, and is meant to
	}
	s.logger().LogAttrs(r.Context(), slog.LevelWarn, "floodgate: a request costs more than a quota and can never be allowed: lower its Cost, or raise the Quota (of a token_bucket, the Burst)",
		slog.String("limit", d.Limit.Name), slog.Int64("cost", d.Cost), slog.Int64("quota", d.Limit.Capacity()))
}

// asking gathers a request's extra, cost and keys, in two passes, and has the
// store decide on them.
type asking struct {
	*session
	extra       string
	choiceWaits bool
	extraWaits  bool
	costWaits   bool
	bad         error // the request is at fault: the other keys are charged all the same
	fault       error // something else is wrong: nothing is charged
	lost        bool  // it is not known which rules are for the request
	counted     bool  // the decision has been counted: see knownSingle
	kind        failureKind
	quotaFailed bool   // fault is the error of Rule.Quota, not of Key or Cost
	rule        string // whose key function is at fault

	lines *lines // nil: the request does not wait
}

// check decides on a request and writes the decision into d.
func (a *asking) check(r Request, d *Decision) {
	c := a.session
	c.probe = bodyProbe{Request: r, snap: c.snap, rule: aHook}
	if !c.snap.simple {
		a.known(&c.probe)
	} else if a.counted = a.knownSingle(&c.probe, d); a.counted {
		return
	}
	if a.fault == nil && a.waiting() {
		if len(c.items) > 0 && !a.extraWaits {
			if err := c.take(r.Context(), true); err != nil {
				a.failed(r, d, err)
				return
			}
			if !c.batch.Allowed && !a.mayWait(r) {
				c.decide(d)
				c.remember(r.Context(), d, true, nil)
				return
			}
		}
		c.probe.open = true
		a.rest(&c.probe)
	}
	if a.fault != nil {
		c.fail(r.Context(), d, a.fault)
		c.failures.report(r.Context(), c.snap, a.kind, "check", a.rule, a.fault)
		return
	}
	if len(c.items) > 0 {
		if err := a.takeInTurn(r, d); err != nil {
			a.failed(r, d, err)
			return
		}
	}
	c.decide(d)
	c.remember(r.Context(), d, false, nil)
	if a.bad != nil && d.Allowed {
		d.Allowed, d.Reason, d.Err = false, ReasonBadRequest, a.bad
	}
}

// failed writes into d that the store has failed.
func (a *asking) failed(r Request, d *Decision, err error) {
	waited := d.Waited
	a.fail(r.Context(), d, err)
	d.Waited = waited
	a.reportStore(r.Context(), "check", err)
}

func (a *asking) waiting() bool {
	return a.choiceWaits || a.extraWaits || a.costWaits || len(a.waits) > 0
}

// known asks for all that needs no body.
func (a *asking) known(p *bodyProbe) {
	a.cost = 1
	if a.snap.choose != nil {
		a.choiceWaits = a.wants(p, aHook, a.askChoice)
	}
	if a.choiceWaits || a.fault != nil || a.lost {
		return
	}
	if !a.snap.plain {
		a.extraWaits = a.wants(p, aHook, a.askExtra)
		a.costWaits = a.wants(p, aHook, a.askCost)
	}
	if a.snap.choose == nil {
		for i := range a.snap.rules {
			a.knownKey(p, i)
		}
		return
	}
	for _, i := range a.chosen {
		a.knownKey(p, i)
	}
}

// knownKey asks for the key of a rule if that needs no body.
func (a *asking) knownKey(p *bodyProbe, i int) {
	if a.extraWaits || a.fault != nil || a.wants(p, i, func(r Request) error { return a.askKey(r, i) }) {
		a.waits = append(a.waits, i)
	}
}

// rest asks for what known has left.
func (a *asking) rest(p *bodyProbe) {
	if a.choiceWaits {
		a.note(aHook, a.askChoice(p))
		if a.fault == nil && !a.lost {
			a.choiceWaits = false
			a.known(p) // nothing waits any more
		}
		return
	}
	if a.extraWaits {
		a.note(aHook, a.askExtra(p))
	}
	if a.costWaits {
		a.note(aHook, a.askCost(p))
		for i := range a.items {
			if item := &a.items[i]; a.snap.rules[item.Rule].Cost == nil {
				item.Cost = a.cost
			}
		}
	}
	for _, i := range a.waits {
		if a.fault == nil {
			a.note(i, a.askKey(p, i))
		}
	}
}

// wants calls f with a request whose body cannot be read, and returns whether f
// tried to read it. If f did, its result does not count.
func (a *asking) wants(p *bodyProbe, rule int, f func(Request) error) (waits bool) {
	p.wanted = false
	items, keys, cost, extra, chosen := len(a.items), len(a.keys), a.cost, a.extra, len(a.chosen)
	err := f(p)
	if p.wanted {
		a.items, a.spans, a.keys = a.items[:items], a.spans[:items], a.keys[:keys]
		a.cost, a.extra, a.chosen = cost, extra, a.chosen[:chosen]
		return true
	}
	a.note(rule, err)
	return false
}

// aHook is in place of a rule's index if an error is a hook's.
const aHook = -1

// note records the error of a rule's key function or of a hook: as the request's
// fault, or as a failure.
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
			if a.quotaFailed {
				a.kind = quotaFailure
			}
		}
	}
}

// Deny implements [Checker]: it asks Hooks.OnDisallowed.
func (l *Limiter) Deny(r Request, d Decision) Denial {
	s := l.current.Load()
	if d.detail.snap != nil {
		s = d.detail.snap
	}
	return s.deny(r, &d)
}

func (s *snapshot) deny(r Request, d *Decision) Denial {
	if s.plain {
		return d.denial() // as DefaultHooks does
	}
	den := s.hooks.OnDisallowed(r, *d)
	if den.Status < 200 || den.Status > 599 {
		den.Status = d.status()
	}
	den.matchType()
	return den
}
