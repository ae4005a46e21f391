package core

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Wait is [Limiter.Take] for workers: it waits until it can charge the hits, as long as ctx
// allows. The decision is Allowed if the error is nil.
//
// In a process, requests of Wait, and of Check with a MaxWait, are allowed first come, first served,
// in a line for each key of a rule. Others do not queue, and may overtake. The first in line asks
// the store again after RetryAfter, and at once if this limiter changes the key's counters
// otherwise (Adjust, Settle, Grant, Reset, ResetAll, Block). A request with several keys stands in
// one line at a time. If two of its keys always have a line, it may never be allowed.
//
// A request that clearly cannot be allowed in time is denied at once. Others may be denied when
// their time is over, with a RetryAfter that is a lower bound.
//
// The error wraps [ErrWaitTooLong] if ctx would end first or the cost is more than a quota, and
// [ErrLineFull] if too many are waiting. If ctx ends in line, it wraps ctx.Err(). In all these
// cases, nothing is charged. Other errors are those of Take.
func (l *Limiter) Wait(ctx context.Context, cost int64, hits ...Hit) (d Decision, err error) {
	s := l.current.Load()
	if s.dryRun || len(hits) == 0 || cost <= 0 { // never denied
		return l.Take(ctx, cost, hits...)
	}
	c := l.session(s)
	t := turn{session: c, lines: &l.lines, ctx: ctx, worker: true}
	err = c.takeAll(ctx, cost, hits, &t, &d)
	t.finish(&d)
	l.end(ctx, c, &d)
	if err == nil && !d.Allowed {
		err = fmt.Errorf("limiter %q, rule %q: %w", s.name, d.Rule(), t.why)
	}
	return d, err
}

// mayWait reports whether every rule that denies the request lets it wait in Check.
func (c *session) mayWait() bool {
	for i := range c.batch.Items {
		if it := &c.batch.Items[i]; it.denied() && c.snap.rules[it.Rule].MaxWait == 0 {
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

// turn lets one request take when its lines allow it: at once if the lines of its keys are empty.
// Otherwise, or if it is denied, it joins a line and takes as its head. Only the request's own
// goroutine waits, and it holds no lock.
type turn struct {
	*session
	lines  *lines
	ctx    context.Context //nolint:containedctx // a turn lives as long as the call that it was made for
	worker bool            // only the context bounds how long it waits

	since time.Time // the start
	slept bool      // it has waited
	me    *waiter   // nil: in no line
	item  int       // the item whose line it is in
	why   error     // why it was denied
}

// leastWait is the wait if the store denies a request and names none.
const leastWait = time.Millisecond

// take asks the store as soon as it is the request's turn. If batch.Allowed is false after it, the
// request was denied, and the results say why.
func (t *turn) take() error {
	if len(t.batch.Items) == 0 {
		return t.do(t.ctx, OpTake)
	}
	t.batch.Allowed, t.since = false, time.Now()
	defer t.leave()
	if err := t.ctx.Err(); t.worker && err != nil {
		t.deny(err, place{})
		return nil
	}
	for {
		frees := t.lines.frees.Load()
		item, wait := t.behind(), time.Duration(0)
		if item < 0 {
			for i := range t.batch.Items {
				t.batch.Items[i].Unknown = false
			}
			if err := t.do(t.ctx, OpTake); err != nil || t.batch.Allowed {
				return err
			}
			if item, wait = t.longest(); item < 0 {
				t.why = ErrWaitTooLong
				return nil
			}
		}
		if !t.stand(item, wait, frees) {
			return nil
		}
	}
}

// finish writes into d how long the request has waited and, if it is denied, why it does not wait
// longer.
func (t *turn) finish(d *Decision) {
	if t.slept {
		d.Waited = time.Since(t.since)
	}
	if d.Reason != ReasonOverLimit {
		return
	}
	switch d.Err = contextErr(t.ctx); {
	case d.Err == nil:
		d.Err = t.why
	case errors.Is(d.Err, context.Canceled):
		d.Reason = ReasonCanceled
	}
}

// contextErr returns ctx.Err(), or what it is about to be: the timer of a context may be a little
// later than that of a request that waits until the same deadline.
func contextErr(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(end) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
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

// behind returns an item in whose line others wait, -1 if there is none. A request that costs
// more than a quota is behind nobody: the store denies it at once.
func (t *turn) behind() (found int) {
	found = -1
	if t.lines.waiting.Load() == 0 {
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
		patient := it.Cost > 0 && (t.worker || t.snap.rules[it.Rule].MaxWait > 0)
		if found < 0 && patient && (t.me == nil || i != t.item) && t.lines.has(t.snap.lineName(room[:0], it)) {
			found = i
		}
	}
	return found
}

// longest returns the item that denies the request longest, and for how long; -1 if waiting does
// not help, or would take too long.
func (t *turn) longest() (item int, wait time.Duration) {
	item = -1
	for i := range t.batch.Items {
		it := &t.batch.Items[i]
		if !it.denied() {
			continue
		}
		left := t.left(i)
		for j := range it.Results {
			if it.Results[j].Allowed {
				continue
			}
			w := it.Results[j].RetryAfter
			if w <= 0 {
				w = leastWait
			}
			if w > left { // as always for a rule without MaxWait
				return -1, 0
			}
			if w > wait {
				item, wait = i, w
			}
		}
	}
	return item, wait
}

// stand waits in the line of an item's key until the request is its head and should take. wait is
// the RetryAfter of the store's denial, 0 if it was not asked. frees is lines.frees before it was
// asked. If stand returns false, the request is denied.
func (t *turn) stand(item int, wait time.Duration, frees uint64) bool {
	if t.me != nil && t.item != item {
		t.leave()
	}
	if t.me == nil {
		it := &t.batch.Items[item]
		var room [128]byte
		me, at := t.lines.join(t.snap.lineName(room[:0], it), it.Cost, t.snap)
		t.item, t.me = item, me
		if me == nil {
			t.why = ErrLineFull
			if wait == 0 { // otherwise the store's results stay
				t.deny(ErrLineFull, at)
			}
			return false
		}
		t.snap.queued(t.ctx, it.Rule, 1)
		switch left := t.left(item); {
		case at.hits > 0 && t.minWait(at) > left:
			return t.deny(ErrWaitTooLong, at)
		case at.hits > 0:
			return t.sleep(left, true)
		case wait == 0 || frees != t.lines.frees.Load(): // hits came back before the request could be woken
			return true
		}
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
	case <-t.me.woken:
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

// minWait returns a lower bound on the wait of a request at this place of a line.
func (t *turn) minWait(at place) (wait time.Duration) {
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
		wait = max(wait, time.Duration(min(windows*float64(l.Window), float64(maxRefill))))
	}
	return max(wait+max(time.Until(at.due), 0), leastWait)
}

// deny writes into the results, without asking the store, that the request is denied, and returns
// false.
func (t *turn) deny(why error, at place) bool {
	if t.why = why; t.worker && errors.Is(why, context.DeadlineExceeded) {
		t.why = fmt.Errorf("%w: %w", ErrWaitTooLong, why)
	}
	wait := t.minWait(at)
	for i := range t.batch.Items {
		it := &t.batch.Items[i]
		it.Unknown, it.At = i != t.item, time.Now().UnixMicro()
		for j := range it.Results {
			it.Results[j] = Result{ResetAfter: wait, MoreAfter: wait, RetryAfter: wait}
		}
	}
	t.batch.Allowed = false
	return false
}

func (t *turn) leave() {
	if t.me == nil {
		return
	}
	t.lines.leave(t.me)
	t.me = nil
	t.snap.queued(t.ctx, t.batch.Items[t.item].Rule, -1)
}

// lines are the requests of a limiter that wait, in one line for each key of a rule. Only the
// head of a line takes.
type lines struct {
	waiting atomic.Int64  // requests in all lines; changes under mu
	frees   atomic.Uint64 // grows when hits come back: the result of an earlier take may be out of date

	mu sync.Mutex       // held for a few assignments: never while a store, a context or a hook is called
	of map[string]*line // by name: see lineName; New makes it
}

// line has the requests for one key. It is never empty.
type line struct {
	name    string
	waiters list.List // of *waiter
	hits    int64     // what all of them cost
	due     time.Time // when the head asks the store again; zero: soon
}

// waiter is a request in a line.
type waiter struct {
	line  *line
	at    *list.Element
	cost  int64
	woken chan struct{} // has a value if the waiter has become the head, or should take sooner
}

// place is where a request stands.
type place struct {
	hits int64     // what the requests behind the head cost, up to this one; 0: it is the head
	due  time.Time // of the line
}

func (l *line) head() *waiter { return l.waiters.Front().Value.(*waiter) }

// lineName appends the name of the line of an item's key to dst. Names of rules contain no
// slash, so that no two keys have the same name.
func (s *snapshot) lineName(dst []byte, it *Item) []byte {
	return append(append(append(dst, s.rules[it.Rule].Name...), '/'), it.Key...)
}

// has returns whether requests wait in the line of this name.
func (q *lines) has(name []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.of[string(name)] != nil
}

// join adds a request to the end of the line of this name. w is nil if the line, or all lines
// together, are full.
func (q *lines) join(name []byte, cost int64, s *snapshot) (w *waiter, at place) {
	cost = min(cost, MaxQuota)
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.of[string(name)]
	if l != nil {
		at = place{l.hits - l.head().cost + cost, l.due}
	}
	if q.waiting.Load() >= mostLines*int64(s.maxWaiters) || l != nil && l.waiters.Len() >= s.maxWaiters {
		return nil, at
	}
	if l == nil {
		l = &line{name: string(name)}
		q.of[l.name] = l
	}
	w = &waiter{line: l, cost: cost, woken: make(chan struct{}, 1)}
	w.at = l.waiters.PushBack(w)
	l.hits += cost
	q.waiting.Add(1)
	return w, at
}

// place returns the last place in the line of w: where w is if it comes back.
func (q *lines) place(w *waiter) place {
	q.mu.Lock()
	defer q.mu.Unlock()
	return place{w.line.hits - w.line.head().cost, w.line.due}
}

// asksAt notes when w, the head of its line, asks the store again.
func (q *lines) asksAt(w *waiter, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.line.due = due
}

// leave removes w from its line. If w was the head, the next one takes.
func (q *lines) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := w.line
	wasHead := l.head() == w
	l.waiters.Remove(w.at)
	l.hits -= w.cost
	q.waiting.Add(-1)
	switch {
	case l.waiters.Len() == 0:
		delete(q.of, l.name)
	case wasHead:
		l.wake()
	}
}

// wake makes the head ask the store at once.
func (l *line) wake() {
	l.due = time.Time{}
	select {
	case l.head().woken <- struct{}{}:
	default: // it has been woken, and has not looked yet
	}
}

// freed is called after the keys of these items have got hits back, or were blocked. The items have
// Rule and Key, and are the caller's. The head of each key's line asks the store at once.
func (q *lines) freed(s *snapshot, items []Item) {
	q.frees.Add(1)
	if q.waiting.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var room [128]byte
	for i := range items {
		if l := q.of[string(s.lineName(room[:0], &items[i]))]; l != nil {
			l.wake()
		}
	}
}

// freedAll is freed for all keys.
func (q *lines) freedAll() {
	q.frees.Add(1)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.of {
		l.wake()
	}
}
