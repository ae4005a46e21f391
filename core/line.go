package core

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// lines are the requests of a limiter that wait, in one line for each key of a rule. Only the
// head of a line takes.
type lines struct {
	tickets atomic.Uint64
	waiting atomic.Int64  // requests in all lines; changes under mu
	frees   atomic.Uint64 // grows when hits or slots come back: the result of an earlier take may be out of date

	mu sync.Mutex       // held for a few assignments: never while a store, a context or a hook is called
	of map[string]*line // by name: see lineName; New makes it
}

// line is the line of one key. It is never empty.
type line struct {
	name    string
	waiters list.List // of *waiter
	hits    int64     // what all of them cost
	due     time.Time // the head does not ask before it; zero: not known
}

// waiter is a request in a line.
type waiter struct {
	line   *line
	at     *list.Element
	ticket uint64 // earlier requests have smaller ones
	cost   int64
	turn   chan struct{} // has a value if the waiter has become the head, or should take sooner
}

// place is the place of a request in a line.
type place struct {
	hits int64     // what those before it cost, and itself, but for the head
	due  time.Time // of the line
}

// lineName appends the name of the line of an item's key to dst. Names of rules contain no
// slash, so that no two keys have the same name.
func (s *snapshot) lineName(dst []byte, it *Item) []byte {
	return append(append(append(dst, s.rules[it.Rule].Name...), '/'), it.Key...)
}

// join adds a request to the line of this name, behind all that came earlier, and never before
// the head, which may be taking. w is nil if the line, or all lines together, are full.
func (q *lines) join(name []byte, ticket uint64, cost int64, s *snapshot) (w *waiter, at place) {
	w = &waiter{ticket: ticket, cost: min(cost, MaxQuota), turn: make(chan struct{}, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.of[string(name)]
	if q.waiting.Load() >= int64(s.maxWaitersTotal) || l != nil && l.waiters.Len() >= s.maxWaiters {
		if l != nil {
			at = place{l.hits + w.cost - l.head().cost, l.due}
		}
		return nil, at
	}
	if l == nil {
		l = &line{name: string(name)}
		q.of[l.name] = l
	}
	l.hits += w.cost
	hits, prev := l.hits, l.waiters.Back()
	for prev != nil && prev.Prev() != nil && prev.Value.(*waiter).ticket > ticket {
		hits -= prev.Value.(*waiter).cost
		prev = prev.Prev()
	}
	if w.line = l; prev == nil {
		w.at = l.waiters.PushFront(w)
	} else {
		w.at = l.waiters.InsertAfter(w, prev)
	}
	q.waiting.Add(1)
	return w, place{hits - l.head().cost, l.due}
}

func (l *line) head() *waiter { return l.waiters.Front().Value.(*waiter) }

// place returns the last place in the line of w: where w is if it comes back.
func (q *lines) place(w *waiter) place {
	q.mu.Lock()
	defer q.mu.Unlock()
	return place{w.line.hits - w.line.head().cost, w.line.due}
}

// earlier returns whether the line of this name has a request that came before the ticket.
func (q *lines) earlier(name []byte, ticket uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.of[string(name)]
	if l == nil {
		return false
	}
	next := l.waiters.Front().Next() // may be earlier than the head: see join
	return l.head().ticket < ticket || next != nil && next.Value.(*waiter).ticket < ticket
}

// asksAt notes when w, the head of its line, asks the store.
func (q *lines) asksAt(w *waiter, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.line.due = due
}

// leave removes w from its line. If w was the head, the next one is now. It need not ask before
// due, unless hits came back since frees.
func (q *lines) leave(w *waiter, due time.Time, frees uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := w.line
	wasHead := l.head() == w
	l.waiters.Remove(w.at)
	l.hits -= w.cost
	q.waiting.Add(-1)
	if l.waiters.Len() == 0 {
		delete(q.of, l.name)
	} else if wasHead {
		if l.wake(); q.frees.Load() == frees {
			l.due = due
		}
	}
}

// wake makes the head ask the store at once.
func (l *line) wake() {
	l.due = time.Time{}
	select {
	case l.head().turn <- struct{}{}:
	default: // it has been woken, and has not looked yet
	}
}

// freed is called after this process has ended leases of these items, or has given them hits
// back. The items have Rule and Key, and are the caller's. The head of each key's line asks the
// store at once.
func (q *lines) freed(s *snapshot, items []Item) {
	if q.frees.Add(1); q.waiting.Load() == 0 {
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
