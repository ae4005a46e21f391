package core

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Wait is [Limiter.Take] for workers: it waits until it can charge the hits, as long as ctx
// allows. The decision is Allowed if the error is nil.
//
// In a process, requests for one key of a rule are allowed first come, first served: those of
// Wait, and those of Check if a MaxWait is configured. Take, Allow and requests that may not
// wait stand in no line. The head of the line asks the store at the instant that RetryAfter
// names, and at once if this limiter gives the key hits back (Adjust, Settle, Grant), or if
// Reset, ResetAll or Block acts on the key. A request with several keys waits for the key that
// denies it longest; meanwhile, later requests may be allowed for its other keys.
//
// A request that clearly cannot make it is denied at once: RetryAfter is too long, or the hits
// ahead of it need too many windows. Some others wait until their time is over, and are denied
// then. The RetryAfter of a denial in line is a lower bound: the store is not asked.
//
// The error wraps [ErrWaitTooLong] if ctx would end first or the cost is more than a quota, and
// [ErrLineFull] if too many are waiting. If ctx ends, the request leaves the line, and the
// error wraps ctx.Err(). In all these cases, nothing is charged. Other errors are those of Take.
func (l *Limiter) Wait(ctx context.Context, cost int64, hits ...Hit) (d Decision, err error) {
	s := l.current.Load()
	if s.dryRun || len(hits) == 0 || cost <= 0 { // never denied
		return l.Take(ctx, cost, hits...)
	}
	c := l.session(s)
	t := turn{session: c, lines: &l.lines, ctx: ctx, worker: true}
	err = c.takeAll(ctx, cost, hits, false, &t, &d)
	t.note(&d)
	l.end(ctx, c, &d)
	if err == nil && !d.Allowed {
		err = fmt.Errorf("limiter %q, rule %q: %w", s.name, d.Rule(), t.why)
	}
	return d, err
}

// mayWait returns whether the rules of all items let a request wait in Check. If denied is true,
// only the rules that deny the request count.
func (c *session) mayWait(denied bool) bool {
	for i := range c.batch.Items {
		it := &c.batch.Items[i]
		if c.snap.rules[it.Rule].MaxWait == 0 && (!denied || it.denied()) {
			return false
		}
	}
	return c.snap.waits
}

func (it *Item) denied() bool {
	for j := range it.Results {
		if !it.Unknown && !it.Results[j].Allowed {
			return true
		}
	}
	return false
}

// turn is the way of one request through the lines. If nobody is in the lines of its keys, the
// request takes. Otherwise, or if it is denied, it waits in a line, and takes as its head. Only
// the request's own goroutine waits, and it holds no lock.
type turn struct {
	*session
	lines  *lines
	ctx    context.Context //nolint:containedctx // a turn lives as long as the call that it was made for
	worker bool            // only the context bounds how long it waits

	ticket uint64
	since  time.Time // the start of the wait; zero before
	slept  bool
	me     *waiter // nil: in no line
	item   int     // the item whose line it is in
	frees  uint64  // lines.frees before the last take
	why    error   // why it was denied
}

const (
	// leastWait is the wait if the store denies a request and names none.
	leastWait = time.Millisecond
	// leasePoll is how often the head of a line asks whether another process has released a
	// slot. The slots of this process wake the head: see freed.
	leasePoll = time.Second
)

// take takes as soon as it is the request's turn. If batch.Allowed is false after it, the
// request was denied, and the results say why.
func (t *turn) take() error {
	if !t.worker && !t.snap.waits || len(t.batch.Items) == 0 {
		return t.do(t.ctx, OpTake)
	}
	t.ticket, t.batch.Allowed = t.lines.tickets.Add(1), false
	defer t.leave()
	if t.worker && t.ctx.Err() != nil {
		t.deny(t.ctx.Err(), place{})
		return nil
	}
	for {
		item, wait := t.behind(), time.Duration(0)
		if item < 0 {
			if err := t.attempt(); err != nil || t.batch.Allowed {
				return err
			}
		}
		if t.since.IsZero() {
			t.since = time.Now()
		}
		if item < 0 {
			if item, wait = t.denied(); item < 0 {
				t.why = ErrWaitTooLong
				return nil
			}
		}
		if !t.stand(item, wait) {
			return nil
		}
	}
}

// note writes into d how long the request has waited.
func (t *turn) note(d *Decision) {
	if !t.slept {
		return
	}
	if waited := time.Since(t.since); waited > 0 {
		d.more().waited = waited
	}
}

// attempt asks the store, once.
func (t *turn) attempt() error {
	for i := range t.batch.Items {
		t.batch.Items[i].Unknown = false
	}
	t.frees = t.lines.frees.Load()
	return t.do(t.ctx, OpTake)
}

// patient returns whether the request may wait in the line of an item's key.
func (t *turn) patient(item int) bool {
	it := &t.batch.Items[item]
	return it.Cost > 0 && (t.worker || t.snap.rules[it.Rule].MaxWait > 0)
}

// left returns how much longer the request may wait in the line of an item's key.
func (t *turn) left(item int) time.Duration {
	left := Never - 1
	if !t.worker {
		left = time.Until(t.since.Add(t.snap.rules[t.batch.Items[item].Rule].MaxWait))
	}
	if end, ok := t.ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	return left
}

// leases returns whether a limit is one of Leases, which end at any time.
func (t *turn) leases(it *Item, limit int) bool {
	return t.snap.leases && t.snap.rules[it.Rule].Limits[limit].Algorithm == Leases
}

// behind returns an item whose line has an earlier request, -1 if there is none. A request that
// costs more than a quota is behind nobody: the store denies it at once.
func (t *turn) behind() (found int) {
	if found = -1; t.lines.waiting.Load() == 0 {
		return found
	}
	var room [128]byte
	for i := range t.batch.Items {
		it := &t.batch.Items[i]
		for j := range it.Results {
			if it.Cost > t.snap.capacity(it, j) {
				return -1
			}
		}
		if found < 0 && t.patient(i) && (t.me == nil || i != t.item) && t.lines.earlier(t.snap.lineName(room[:0], it), t.ticket) {
			found = i
		}
	}
	return found
}

// denied returns the item that denies the request longest, and for how long; -1 if waiting does
// not help, or would take too long.
func (t *turn) denied() (item int, wait time.Duration) {
	item = -1
	for i := range t.batch.Items {
		it := &t.batch.Items[i]
		if !it.denied() {
			continue
		}
		left := t.left(i)
		for j := range it.Results {
			w := it.Results[j].RetryAfter
			switch {
			case it.Results[j].Allowed:
				continue
			case w <= 0:
				w = leastWait
			case w != Never && left > 0 && t.leases(it, j):
				w = min(left, leasePoll) // at the end of its time it asks once more
			}
			if !t.patient(i) || w > left {
				return -1, 0
			}
			if w > wait {
				item, wait = i, w
			}
		}
	}
	return item, wait
}

// stand waits in the line of an item's key until the request is the head and should take. wait
// is how long the store has denied it, 0 if it was not asked. If stand returns false, the request
// is denied.
func (t *turn) stand(item int, wait time.Duration) bool {
	if t.me != nil && t.item != item {
		t.leave()
	}
	if t.item = item; t.me == nil {
		it := &t.batch.Items[item]
		var room [128]byte
		me, at := t.lines.join(t.snap.lineName(room[:0], it), t.ticket, it.Cost, t.snap)
		if me == nil {
			if t.why = ErrLineFull; wait == 0 { // otherwise the store's results stay
				t.deny(ErrLineFull, at)
			}
			return false
		}
		t.me = me
		t.snap.queued(t.ctx, it.Rule, 1)
		switch {
		case at.hits > 0: // behind others
			left := t.left(item)
			if t.reckon(at) > left {
				return t.deny(ErrWaitTooLong, at)
			}
			if !t.sleep(left, true) {
				return false
			}
			if wait = time.Until(t.lines.place(me).due); it.Quotas != nil || wait > t.left(item) {
				wait = 0 // the store decides
			}
		case t.frees != t.lines.frees.Load(): // since it has asked, and before it could be woken
			wait = 0
		}
	}
	if wait <= 0 {
		return true
	}
	t.lines.asksAt(t.me, time.Now().Add(wait))
	return t.sleep(wait, false)
}

// sleep waits until wait has passed, or the waiter is woken. It returns false if the request is
// denied: its context has ended, or last is true and wait has passed.
func (t *turn) sleep(wait time.Duration, last bool) bool {
	t.slept = true
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-t.me.turn:
		last = false
	case <-timer.C:
	case <-t.ctx.Done():
	}
	if err := t.ctx.Err(); err != nil {
		return t.deny(err, t.lines.place(t.me))
	}
	if last {
		return t.deny(ErrWaitTooLong, t.lines.place(t.me))
	}
	return true
}

// reckon returns a lower bound on the wait of a request at this place of a line.
func (t *turn) reckon(at place) (wait time.Duration) {
	it := &t.batch.Items[t.item]
	for j := range it.Results {
		l := t.snap.rules[it.Rule].Limits[j]
		if it.Quotas != nil {
			l = l.with(it.Quotas[j])
		}
		windows := float64(at.hits) / float64(max(l.Quota, 1))
		if l.Algorithm != TokenBucket {
			windows = math.Floor(windows)
		}
		if l.Algorithm != Leases {
			wait = max(wait, time.Duration(min(windows*float64(l.Window), float64(MaxRefill))))
		}
	}
	return max(wait+max(time.Until(at.due), 0), leastWait)
}

// deny writes into the results, without asking the store, that the request is denied, and returns
// false.
func (t *turn) deny(why error, at place) bool {
	if t.why = why; t.worker && errors.Is(why, context.DeadlineExceeded) {
		t.why = fmt.Errorf("%w: %w", ErrWaitTooLong, why)
	}
	wait := t.reckon(at)
	for i := range t.batch.Items {
		t.batch.Items[i].Unknown = i != t.item
		for j := range t.batch.Items[i].Results {
			t.batch.Items[i].Results[j] = Result{ResetAfter: wait, MoreAfter: wait, RetryAfter: wait}
		}
	}
	t.batch.Allowed = false
	return false
}

// leave leaves the line, if the request is in one. If it has taken the last hit, the next request
// need not ask before there is another.
func (t *turn) leave() {
	if t.me == nil {
		return
	}
	var due time.Time
	if it := &t.batch.Items[t.item]; t.batch.Allowed && it.Quotas == nil && t.snap == t.snap.limiter.current.Load() {
		for j := range it.Results {
			r := &it.Results[j]
			if at := time.Now().Add(r.MoreAfter); r.Remaining == 0 && !t.leases(it, j) && at.After(due) {
				due = at
			}
		}
	}
	t.lines.leave(t.me, due, t.frees)
	t.me = nil
	t.snap.queued(t.ctx, t.batch.Items[t.item].Rule, -1)
}
