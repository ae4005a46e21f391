package core

import (
	"context"
	"errors"
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
		c.decide(ctx, &d, hits)
	}
	if waited := t.waited(); waited > 0 {
		d.more().waited = waited
	}
	l.end(ctx, c, &d)
	if err == nil && !d.Allowed {
		err = fmt.Errorf("limiter %q, rule %q: %w", s.name, d.Rule(), t.why)
	}
	return d, err
}

// turnedAway reports whether a rule that lets no request wait denies this one. It is asked
// before the request joins the line of another rule: requests that are denied anyway must not take
// the room of those that wait.
func (t *turn) turnedAway() (bool, error) {
	impatient := func(i int) bool { return t.batch.Items[i].Cost > 0 && !t.patient(i) }
	for i := range t.batch.Items {
		if !impatient(i) {
			continue
		}
		if err := t.attempt(true); err != nil {
			return false, err
		}
		for j := i; j < len(t.batch.Items); j++ {
			if it := &t.batch.Items[j]; impatient(j) && !it.Unknown && slices.ContainsFunc(it.Results, func(r Result) bool { return !r.Allowed }) {
				t.why = ErrWaitTooLong
				return true, nil
			}
		}
		return false, nil
	}
	return false, nil
}

// mayWait reports whether a request that a peek has denied may wait for its turn.
func (c *session) mayWait(r Request, lines *lines) bool {
	if !c.snap.waits {
		return false
	}
	t := turn{session: c, lines: lines, ctx: r.Context()}
	item, _, hopeless := t.denied()
	if hopeless || item < 0 {
		return false
	}
	var room [128]byte
	_, full := lines.earlier(c.lineName(room[:0], item), c.generation(item), 0, c.snap)
	return !full
}

// turn is the way of one request to its turn: it takes, and while a limit denies it, it
// waits in the line of that limit's key.
//
// A request joins a line without a take if somebody is in it already. The head takes at the
// instant at which the results of the take before say that the next hit is there; if that is
// denied all the same, because others have come in between, its results say the next instant.
// No goroutine waits but the request's own, and none waits with a lock.
type turn struct {
	*session
	lines  *lines
	ctx    context.Context //nolint:containedctx // a turn lives as long as the call that it was made for
	worker bool            // only the context bounds how long it waits

	ticket uint64
	since  time.Time // when it began to wait; zero: it has not
	now    time.Time // of the step: what is left of the request's time is the same until the next one
	me     *waiter   // nil: it is in no line
	item   int       // in the line of whose key it is
	slept  bool
	frees  uint64 // lines.frees before it has asked the store last
	why    error  // why it does not wait any longer
}

const (
	// leastWait is how long a request waits if the store denies it and names no wait.
	leastWait = time.Millisecond
	// leasePoll is how often the head of a line asks the store whether another process has
	// released a lease. Leases of this process call the head: see freed.
	leasePoll = time.Second
)

// take takes as soon as it is the request's turn. If batch.Allowed is false after it, the
// request was denied, and the results say why.
func (t *turn) take() error {
	t.ticket = t.lines.tickets.Add(1)
	defer t.leave()
	if err := t.ctx.Err(); err != nil && t.worker {
		t.gone(err)
		return nil
	}
	at, wait := t.behind(), time.Duration(-1)
	if at >= 0 {
		if away, err := t.turnedAway(); away || err != nil {
			return err
		}
	}
	for {
		if at >= 0 {
			if turn, err := t.stand(at, wait); !turn || err != nil {
				return err
			}
			if at, wait = t.behind(), -1; at >= 0 {
				continue
			}
		}
		err := t.attempt(false)
		if t.learn(err); err != nil {
			return err
		}
		if t.batch.Allowed {
			return nil
		}
		var hopeless bool
		if at, wait, hopeless = t.denied(); hopeless || at < 0 {
			t.why = ErrWaitTooLong
			return nil
		}
	}
}

// waited is how long the request has waited.
func (t *turn) waited() time.Duration {
	if !t.slept {
		return 0
	}
	return time.Since(t.since)
}

// attempt asks the store, once.
func (t *turn) attempt(peek bool) error {
	for i := range t.batch.Items {
		t.batch.Items[i].Unknown = false
	}
	t.batch.Degraded, t.batch.Cached = false, false
	t.frees = t.lines.frees.Load()
	if peek {
		return t.do(t.ctx, OpPeek)
	}
	return t.do(t.ctx, OpTake)
}

// patient reports whether the request may wait in the line of an item's key.
func (t *turn) patient(item int) bool {
	it := &t.batch.Items[item]
	return it.Cost > 0 && (t.worker || t.snap.rules[it.Rule].MaxWait > 0)
}

// until is when the request stops waiting in the line of an item's key; zero: never.
func (t *turn) until(item int) (until time.Time) {
	if !t.worker {
		until = t.since.Add(t.snap.rules[t.batch.Items[item].Rule].MaxWait)
	}
	if end, ok := t.ctx.Deadline(); ok && (until.IsZero() || end.Before(until)) {
		until = end
	}
	return until
}

// inTime reports whether the wait ends before the request stops waiting for an item.
func (t *turn) inTime(item int, wait time.Duration) bool {
	until := t.until(item)
	return wait != Never && (until.IsZero() || until.Sub(t.now) >= wait)
}

// behind returns an item in whose line somebody has come before the request, -1 if there is
// none. The line in which the request is the head does not count.
func (t *turn) behind() int {
	if t.lines.waiting.Load() == 0 {
		return -1
	}
	var room [128]byte
	for i := range t.batch.Items {
		if !t.patient(i) || t.me != nil && i == t.item {
			continue
		}
		if earlier, _ := t.lines.earlier(t.lineName(room[:0], i), t.generation(i), t.ticket, t.snap); earlier {
			return i
		}
	}
	return -1
}

// denied returns the item that the request waits longest for, -1 if none denies it, and how long.
// hopeless means that waiting does not help, or would take longer than the request may wait.
func (t *turn) denied() (item int, wait time.Duration, hopeless bool) {
	t.step()
	item = -1
	for i := range t.batch.Items {
		if t.batch.Items[i].Unknown {
			continue
		}
		for j := range t.batch.Items[i].Results {
			r := &t.batch.Items[i].Results[j]
			if r.Allowed {
				continue
			}
			w := r.RetryAfter
			switch {
			case w == Never:
			case t.leases(&t.batch.Items[i], j):
				w = t.leaseWait(i)
			case w <= 0:
				w = leastWait
			}
			if !t.patient(i) || !t.inTime(i, w) {
				return -1, 0, true
			}
			if w > wait {
				item, wait = i, w
			}
		}
	}
	return item, wait, false
}

// step begins a step, which takes no time for those that reckon with times.
func (t *turn) step() {
	if t.now = time.Now(); t.since.IsZero() {
		t.since = t.now
	}
}

// stand waits in the line of an item's key until it is the request's turn to take. wait is how
// long the store has said, negative if it was not asked. If stand returns
// false, the request is denied.
func (t *turn) stand(item int, wait time.Duration) (turn bool, err error) {
	t.step()
	if t.me != nil && t.item != item {
		t.leave()
	}
	if t.me == nil {
		var room [128]byte
		me, ahead := t.lines.join(t.lineName(room[:0], item), t.generation(item), t.ticket, t.batch.Items[item].Cost, t.snap)
		if me == nil {
			return t.refuse(ErrLineFull, item, ahead)
		}
		t.me, t.item = me, item
		t.snap.queued(t.ctx, t.batch.Items[item].Rule, 1)
		switch {
		case ahead > 0:
			wait = -1
			if ok, err := t.hopes(ahead); !ok || err != nil {
				return false, err
			}
			if ok, err := t.sleep(-1); !ok || err != nil {
				return false, err
			}
		case wait >= 0:
			t.learn(nil)
			if t.frees != t.lines.frees.Load() { // before it could be called
				wait = 0
			}
		}
	}
	if wait < 0 {
		t.step()
		if wait = t.opens(); !t.inTime(item, wait) {
			return t.refuse(ErrWaitTooLong, item, 0)
		}
	}
	if wait == 0 {
		return true, nil
	}
	return t.sleep(wait)
}

// sleep waits until wait has passed, or the waiter is called. A negative wait is one that only
// a call ends. It returns false if the request is denied before that.
func (t *turn) sleep(wait time.Duration) (turn bool, err error) {
	t.slept = true
	var due <-chan time.Time
	late := false
	if until := t.until(t.item); wait < 0 && !until.IsZero() {
		wait, late = max(time.Until(until), 0), true
	}
	if wait >= 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-t.me.turn:
		late = false
	case <-due:
	case <-t.ctx.Done():
	}
	if err := t.ctx.Err(); err != nil {
		t.gone(err)
		return false, nil
	}
	if late {
		return t.refuse(ErrWaitTooLong, t.item, t.lines.ahead(t.me))
	}
	return true, nil
}

// gone writes into the results, without asking the store, that the request waits no longer.
func (t *turn) gone(why error) {
	t.why = why
	if errors.Is(why, context.DeadlineExceeded) && t.worker {
		t.why = fmt.Errorf("%w: %w", ErrWaitTooLong, why)
	}
	t.step()
	wait := leastWait
	if t.me != nil {
		wait = max(wait, t.opens())
	}
	for i := range t.batch.Items {
		t.batch.Items[i].Unknown = i != t.item
		for j := range t.batch.Items[i].Results {
			t.batch.Items[i].Results[j] = Result{ResetAfter: wait, MoreAfter: wait, RetryAfter: wait}
		}
	}
	t.batch.Allowed = false
}

// leave leaves the line, if the request is in one.
func (t *turn) leave() {
	if t.me != nil {
		t.lines.leave(t.me)
		t.me = nil
		t.snap.queued(t.ctx, t.batch.Items[t.item].Rule, -1)
	}
}

// learn lets the others in the line know the results of a take. After an error, each of them asks
// at its turn.
func (t *turn) learn(err error) {
	if t.me == nil {
		return
	}
	it := &t.batch.Items[t.item]
	if err != nil || it.Unknown || t.batch.Degraded || it.Quotas != nil {
		t.lines.learn(t.me.line, nil, t.snap, t.frees)
	} else {
		t.lines.learn(t.me.line, it.Results, t.snap, t.frees)
	}
}
