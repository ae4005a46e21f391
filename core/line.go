package core

import (
	"sync"
	"sync/atomic"
	"time"
)

// lines are the requests of a limiter that wait, in one line for each key of a rule. The
// head of a line, its first request, is the only one of the line that takes. If Reconfigure
// changes the limits of a rule, later requests have lines of their own: those that wait for a
// low quota must not hold up the others.
type lines struct {
	tickets atomic.Uint64
	waiting atomic.Int64  // requests in all lines; changes under mu
	frees   atomic.Uint64 // grows when there is more room: what a take has found before may have changed

	mu sync.Mutex       // held for a few assignments: never while a store, a context or a hook is called
	of map[string]*line // by name: the first of the lines of a key
}

// line is the line of one key.
type line struct {
	name       string // see session.lineName
	generation uint64 // of the rule's limits: see compiledRule
	other      *line  // of the same key, with other limits
	head, tail *waiter
	length     int
	cost       int64     // of all requests in the line
	seen       []Result  // by the last take of a head
	seenAt     time.Time // the end of that take
	seenBy     *snapshot // the configuration of that head
}

// waiter is a request in a line.
type waiter struct {
	line       *line
	prev, next *waiter
	ticket     uint64 // requests that came earlier have smaller ones
	cost       int64
	turn       chan struct{} // has a value if the waiter has become the head, or should take sooner
}

// lineName appends the name of the line of a key to dst. Names of rules contain no slash, so
// that no two keys have the same name.
func lineName(dst []byte, rule string, key []byte) []byte {
	dst = append(dst, rule...)
	dst = append(dst, '/')
	return append(dst, key...)
}

// lineName appends the name of the line of an item's key to dst.
func (c *session) lineName(dst []byte, item int) []byte {
	s := c.spans[item]
	return lineName(dst, c.snap.rules[c.items[item].Rule].Name, c.keys[s.from:s.to])
}

// generation is the generation of the limits of an item.
func (c *session) generation(item int) uint64 { return c.snap.rules[c.items[item].Rule].generation }

// join adds a request to the line of this name, behind all that came earlier, and never
// before the head, which may be taking. It returns what the requests before it cost. w is nil if
// the lines of the key, or all lines together, are full.
func (q *lines) join(name []byte, generation, ticket uint64, cost int64, s *snapshot) (w *waiter, ahead int64) {
	w = &waiter{ticket: ticket, cost: min(cost, MaxQuota), turn: make(chan struct{}, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	l, full := q.find(name, generation, s)
	if full {
		return nil, l.costs()
	}
	if l == nil {
		if q.of == nil {
			q.of = map[string]*line{}
		}
		l = &line{name: string(name), generation: generation, other: q.of[string(name)]}
		q.of[l.name] = l
	}
	w.line, w.prev, ahead = l, l.tail, l.cost
	for w.prev != nil && w.prev != l.head && w.prev.ticket > ticket {
		ahead -= w.prev.cost
		w.prev = w.prev.prev
	}
	if w.prev == nil {
		l.head, l.tail = w, w
	} else {
		w.next, w.prev.next = w.prev.next, w
		if w.next == nil {
			l.tail = w
		} else {
			w.next.prev = w
		}
	}
	l.length++
	l.cost += w.cost
	q.waiting.Add(1)
	return w, ahead
}

// find returns the line of this name for this generation of limits, nil if nobody is in it yet, and whether
// nobody may join it.
func (q *lines) find(name []byte, generation uint64, s *snapshot) (found *line, full bool) {
	length := 0
	for l := q.of[string(name)]; l != nil; l = l.other {
		length += l.length
		if l.generation == generation {
			found = l
		}
	}
	return found, length >= s.maxWaiters || q.waiting.Load() >= int64(s.maxWaitersTotal)
}

func (l *line) costs() int64 {
	if l == nil {
		return 0
	}
	return l.cost
}

// leave removes w from its line. If w was the head, the next one is now.
func (q *lines) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := w.line
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
		if w.prev == nil {
			w.next.call()
		}
	}
	l.length--
	l.cost -= w.cost
	q.waiting.Add(-1)
	if l.head == nil {
		q.drop(l)
	}
}

// drop forgets an empty line.
func (q *lines) drop(l *line) {
	first := q.of[l.name]
	switch {
	case first != l:
		for first.other != l {
			first = first.other
		}
		first.other = l.other
	case l.other != nil:
		q.of[l.name] = l.other
	default:
		delete(q.of, l.name)
	}
}

// call tells the waiter that it is its turn.
func (w *waiter) call() {
	select {
	case w.turn <- struct{}{}:
	default: // it has been told, and has not looked yet
	}
}

// ahead returns what the requests before w cost.
func (q *lines) ahead(w *waiter) (cost int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for p := w.prev; p != nil; p = p.prev {
		cost += p.cost
	}
	return cost
}

// earlier reports whether the line of this name has a request that came before the ticket,
// and whether the line is full.
func (q *lines) earlier(name []byte, generation, ticket uint64, s *snapshot) (earlier, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l, full := q.find(name, generation, s)
	if l == nil {
		return false, full
	}
	// The head may be later than the others: see join.
	return l.head.ticket < ticket || l.head.next != nil && l.head.next.ticket < ticket, full
}

// learn notes the results of a take of the line's head, nil if they are of no use to others.
// frees is what it was before that take.
func (q *lines) learn(l *line, results []Result, s *snapshot, frees uint64) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.frees.Load() != frees {
		results = nil
	}
	l.seen, l.seenAt, l.seenBy = append(l.seen[:0], results...), now, s
}

// known appends to dst what a head of the same configuration has learnt last, and returns how
// long ago that was true.
func (q *lines) known(dst []Result, l *line, s *snapshot) (_ []Result, age time.Duration) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.seenBy != s {
		return dst, 0
	}
	return append(dst, l.seen...), now.Sub(l.seenAt)
}
