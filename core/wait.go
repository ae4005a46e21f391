package core

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// turn lets one request take. If others are in the line of one of its keys, or if it is
// denied, it joins that line, and takes when it is the head. Only the request's own goroutine waits,
// and it holds no lock.
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
	t.batch.Allowed, t.batch.Degraded, t.since = false, false, time.Now()
	defer t.leave()
	for {
		if t.ctx.Err() != nil && (t.worker || t.me != nil) {
			t.deny(t.ended(), 0)
			return nil
		}
		frees := t.lines.frees.Load()
		item, wait := t.behind(), time.Duration(0) // the store's RetryAfter; 0 if it is not asked
		if item < 0 {
			for i := range t.batch.Items {
				t.batch.Items[i].Unknown = false
			}
			if err := t.do(t.ctx, OpTake); err != nil || t.batch.Allowed {
				return err
			}
			i, limit := t.deciding()
			item, wait = i, cmp.Or(t.batch.Items[i].Results[limit].RetryAfter, leastWait)
			if wait > t.left(t.maxWait()) {
				t.why = t.ended()
				return nil
			}
		}
		if !t.stand(item, wait, frees) {
			return nil
		}
	}
}

// finish writes into d how long the request has waited and, if it is denied, why.
func (t *turn) finish(d *Decision) {
	if t.slept {
		d.Waited = time.Since(t.since)
	}
	if d.Reason == ReasonOverLimit {
		if d.Err = t.why; errors.Is(t.why, context.Canceled) {
			d.Reason = ReasonCanceled
		}
	}
}

// ended returns why a request whose time is over is denied.
func (t *turn) ended() error {
	if err := t.ctx.Err(); errors.Is(err, context.Canceled) {
		return err
	}
	return ErrWaitTooLong
}

// left returns how much longer the request may wait: in Check at most maxWait in all.
func (t *turn) left(maxWait time.Duration) time.Duration {
	left := Never - 1
	if !t.worker {
		left = time.Until(t.since.Add(maxWait))
	}
	if end, ok := t.ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	return left
}

// behind returns an item in whose line others wait, -1 if there is none. The request's own line does
// not count. A request that costs more than a quota is behind nobody: the store denies it at once.
func (t *turn) behind() (found int) {
	found = -1
	if t.lines.waiting.Load() == 0 {
		return found
	}
	t.lines.mu.Lock()
	defer t.lines.mu.Unlock()
	for i := range t.batch.Items {
		it := &t.batch.Items[i]
		for j := range it.Results {
			if it.Cost > t.snap.capacity(it, j) {
				return -1
			}
		}
		patient := it.Cost > 0 && (t.worker || t.snap.rules[it.Rule].MaxWait > 0)
		if found < 0 && patient && (t.me == nil || i != t.item) && t.lines.find(t.snap, it) != nil {
			found = i
		}
	}
	return found
}

// stand waits in the line of an item's key until the request should take, or returns false if it is
// denied. wait is the store's RetryAfter, 0 if it was not asked. frees is lines.frees before that.
func (t *turn) stand(item int, wait time.Duration, frees uint64) bool {
	if t.me != nil && t.item == item {
		return t.sleep(wait, false)
	}
	t.leave()
	it := &t.batch.Items[item]
	me, ahead := t.lines.join(t.snap, it)
	if t.item, t.me = item, me; me == nil {
		if t.why = ErrLineFull; wait == 0 { // otherwise the store's results stay
			t.deny(ErrLineFull, ahead)
		}
		return false
	}
	t.snap.queued(t.ctx, it.Rule, 1)
	left := t.left(t.snap.rules[it.Rule].MaxWait)
	switch {
	case ahead > 0 && t.estimate(ahead) > left:
		return t.deny(ErrWaitTooLong, ahead)
	case ahead > 0:
		return t.sleep(left, true)
	case wait == 0 || frees != t.lines.frees.Load(): // hits came back before it stood here
		return true
	}
	return t.sleep(wait, false)
}

// sleep waits until wait has passed, the waiter is woken, or the context ends. A request with others
// before it that is not woken is denied, and sleep returns false.
func (t *turn) sleep(wait time.Duration, others bool) bool {
	t.slept = true
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-t.me.woken:
		others = false
	case <-timer.C:
	case <-t.ctx.Done():
	}
	return !others || t.deny(t.ended(), 0)
}

// estimate returns how long hits behind the line's head need, if each window allows a quota.
func (t *turn) estimate(hits int64) (wait time.Duration) {
	it := &t.batch.Items[t.item]
	for j, l := range t.snap.rules[it.Rule].Limits {
		if it.Quotas != nil {
			l.Quota = it.Quotas[j]
		}
		windows := float64(hits) / float64(max(l.Quota, 1))
		if l.Algorithm != TokenBucket { // a window gives its hits back together
			windows = math.Floor(windows)
		}
		wait = max(wait, time.Duration(min(windows*float64(l.Window), float64(maxRefill))))
	}
	return max(wait, leastWait)
}

// deny writes a denial into the results, without asking the store, and returns false.
func (t *turn) deny(why error, ahead int64) bool {
	t.why = why
	wait := t.estimate(ahead)
	for i := range t.batch.Items {
		it := &t.batch.Items[i]
		it.Unknown, it.At = i != t.item, time.Now().UnixMicro()
		for j := range it.Results {
			it.Results[j] = Result{ResetAfter: wait, MoreAfter: wait, RetryAfter: wait}
		}
	}
	return false
}

func (t *turn) leave() {
	if t.me != nil {
		t.lines.leave(t.me)
		t.snap.queued(t.ctx, t.batch.Items[t.item].Rule, -1)
	}
}

// lines are the requests of a limiter that wait, in one line for each key of a rule. Only the
// head of a line takes.
type lines struct {
	waiting atomic.Int64  // requests in all lines; changes under mu
	frees   atomic.Uint64 // grows when hits come back: an earlier denial may be out of date

	mu sync.Mutex // held for a few assignments: never while a store, a context or a hook is called
	of map[lineKey]*line
}

type lineKey struct{ rule, key string }

// line has the requests for one key. It is never empty.
type line struct {
	lineKey
	waiters []*waiter // the head first
	hits    int64     // what all of them cost
}

// waiter is a request in a line.
type waiter struct {
	line  *line
	cost  int64
	woken chan struct{} // has a value if the waiter has become the head, or should take sooner
}

// find returns the line of an item's key, nil if nobody waits. q.mu is held.
func (q *lines) find(s *snapshot, it *Item) *line {
	return q.of[lineKey{s.rules[it.Rule].Name, string(it.Key)}]
}

// join adds a request to the end of the line of an item's key. w is nil if this line or all lines are
// full. ahead is what the requests behind the head cost, this one among them: 0 if it is the head.
func (q *lines) join(s *snapshot, it *Item) (w *waiter, ahead int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.find(s, it)
	if l == nil {
		l = &line{lineKey: lineKey{s.rules[it.Rule].Name, string(it.Key)}}
	} else {
		ahead = l.hits - l.waiters[0].cost + min(it.Cost, MaxQuota)
	}
	if q.waiting.Load() >= mostLines*int64(s.maxWaiters) || len(l.waiters) >= s.maxWaiters {
		return nil, ahead
	}
	w = &waiter{line: l, cost: min(it.Cost, MaxQuota), woken: make(chan struct{}, 1)}
	l.waiters = append(l.waiters, w)
	l.hits += w.cost
	q.of[l.lineKey] = l
	q.waiting.Add(1)
	return w, ahead
}

// leave removes w from its line. If w was the head, the next one takes.
func (q *lines) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := w.line
	l.hits -= w.cost
	q.waiting.Add(-1)
	switch i := slices.Index(l.waiters, w); {
	case len(l.waiters) == 1:
		delete(q.of, l.lineKey)
	case i == 0:
		l.waiters = l.waiters[1:]
		l.wake()
	default:
		l.waiters = slices.Delete(l.waiters, i, i+1)
	}
}

// wake makes the head ask the store at once.
func (l *line) wake() {
	select {
	case l.waiters[0].woken <- struct{}{}:
	default: // it has been woken, and has not looked yet
	}
}

// freed is called after the keys of these items have got hits back, or were blocked: the head of
// each key's line asks the store at once. Without items, every head does.
func (q *lines) freed(s *snapshot, items []Item) {
	q.frees.Add(1)
	if q.waiting.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range items {
		if l := q.find(s, &items[i]); l != nil {
			l.wake()
		}
	}
	if len(items) == 0 {
		for _, l := range q.of {
			l.wake()
		}
	}
}
