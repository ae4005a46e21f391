package core

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Wait charges cost hits to every counter named as [Limiter.Take] does, and waits until
// it can. It is for workers, and for clients of something that has limits of its own.
// The decision is Allowed if the error is nil.
//
// Wait waits as long as ctx allows, and returns at once if that is not long enough. Its error
// then wraps [ErrWaitTooLong], as it does if cost is more than a limit ever admits. It wraps
// [ErrLineFull] if too many are waiting, and ctx.Err() if ctx ends
// meanwhile, or has ended before. Then nothing was charged. Other errors are those of Take.
//
// # The order
//
// In a process, requests for one key of a rule are admitted first come, first served: those
// of Wait, and those of Check if a MaxWait is configured. Only the first in line asks the
// store, at the instant that RetryAfter names; if another process has taken the hit, it
// waits for the next one. It asks at once if this limiter gives the key hits back (Adjust,
// Settle, Grant), or if Reset, ResetAll or Block acts on the key. Take, Allow, and requests
// that may not wait stand in no line, and are decided at once. A request with several keys
// waits in the line of the key that denies it for longest; meanwhile, later ones may be
// admitted for its other keys. In a line, each is admitted after those that came before it,
// also if it costs less.
//
// Whether a request can be admitted in time is reckoned when it comes. The hits that
// those before it need are counted in, as if no others came. If these are more
// than the quota, each further quota is counted with a further window. Reckoning may ask the
// store, without a charge. If a request is admitted in line and its time ends
// nevertheless, because others have taken the hits, it is denied then.
//
// The time is the process's, whatever the clock of the store is. Reconfigure changes
// nothing for requests that wait: they are decided by the configuration with which
// they began. If the limits of a rule have changed, later requests do not stand behind
// them, but in a line of their own.
func (l *Limiter) Wait(ctx context.Context, cost int64, hits ...Hit) (d Decision, err error) {
	s := l.current.Load()
	if s.dryRun || len(hits) == 0 || cost <= 0 { // never denied
		return l.Take(ctx, cost, hits...)
	}
	c := l.session(s)
	t := turn{session: c, lines: &l.lines, ctx: ctx, worker: true}
	c.cost = cost
	if err = c.addHits(cost, hits); err == nil && s.leases {
		err = c.needsAcquire()
	}
	if err == nil {
		if err = t.take(); err != nil {
			c.reportStore(ctx, "wait", err)
		}
	}
	if err != nil {
		c.fail(ctx, &d, err)
	} else {
		c.decide(&d)
		c.remember(ctx, &d, false, hits)
	}
	d.Waited = t.waited()
	l.release(c, &d)
	if s.observer != nil {
		s.observer.decided(ctx, &d)
	}
	if err == nil && !d.Allowed {
		err = fmt.Errorf("limiter %q, rule %q: %w", s.name, d.Rule, t.why)
	}
	return d, err
}

// takeInTurn charges the request, after a wait if it may wait.
func (a *asking) takeInTurn(r Request, d *Decision) error {
	if a.lines == nil {
		return a.take(r.Context(), false)
	}
	t := turn{session: a.session, lines: a.lines, ctx: r.Context()}
	err := t.take()
	if d.Waited = t.waited(); err == nil && !t.batch.Allowed {
		d.Err = ended(t.ctx)
	}
	return err
}

// ended returns ctx.Err(), or what it is about to be: the timer of a context may be a little
// later than that of a request that waits until the same deadline.
func ended(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(end) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// turnedAway reports whether a rule that lets no request wait denies this one. It is asked
// before the request joins the line of another rule: requests that are denied anyway must not take
// the room of those that wait.
func (t *turn) turnedAway() (bool, error) {
	impatient := func(i int) bool { return t.items[i].Cost > 0 && !t.patient(i) }
	for i := range t.items {
		if !impatient(i) {
			continue
		}
		if err := t.attempt(true); err != nil {
			return false, err
		}
		for j := i; j < len(t.items); j++ {
			if it := &t.items[j]; impatient(j) && !it.Unknown && slices.ContainsFunc(it.Results, func(r Result) bool { return !r.Allowed }) {
				t.why = ErrWaitTooLong
				return true, nil
			}
		}
		return false, nil
	}
	return false, nil
}

// mayWait reports whether a request that a peek has denied may wait for its turn.
func (a *asking) mayWait(r Request) bool {
	if a.lines == nil {
		return false
	}
	t := turn{session: a.session, lines: a.lines, ctx: r.Context()}
	item, _, hopeless := t.denied()
	if hopeless || item < 0 {
		return false
	}
	var room [128]byte
	_, full := a.lines.earlier(a.lineName(room[:0], item), a.generation(item), 0, a.snap)
	return !full
}
