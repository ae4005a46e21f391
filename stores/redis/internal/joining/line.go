// Package joining lets callers who want to send something at about the same time
// send it together: in one exchange with a server, instead of one each.
//
// A [Line] limits how many exchanges are under way. Below the limit, a member is sent
// at once: it does not wait for others to come. At the limit, members wait, and go
// together with the next exchange, in the order in which they came. The limit follows
// from the time that an exchange takes: 2 for a server that answers in 100 µs, 10 for
// one that answers in 1 ms, and never more than 12.
//
// The package knows nothing of what is sent, of deadlines or of errors. A member
// that nobody wants to be sent any more is left out: see [Config.Gone].
package joining

import (
	"cmp"
	"runtime"
	"sync"
	"time"
)

// Config says how a [Line] sends. Its functions may be called concurrently.
type Config[T any] struct {
	// Send sends the members in one exchange, and returns when it has ended. It
	// must not keep the Exchange. The line calls it on goroutines of its own, and
	// Do calls it on the caller's.
	Send func(*Exchange[T])
	// Weight returns how many microseconds a member adds to an exchange: 1 or more.
	// It is called while the line is locked.
	Weight func(member T) int
	// Gone reports whether a member need not be sent any more; it is then dropped.
	// It is called while the line is locked.
	Gone func(member T) bool
	// Most is the largest number of members in an exchange, and MostWeight the
	// largest weight of an exchange of two or more.
	Most, MostWeight int
	// AtOnce is how many exchanges are under way before anybody has to wait. If it
	// is 0, it follows from the time that exchanges take.
	AtOnce int
	// Patience is how long an exchange may take before it is stuck: see Push.
	Patience time.Duration
	// MostStuck is how many exchanges may be stuck at a time.
	MostStuck int
}

// Line joins members into exchanges. Its methods may be called concurrently. It
// has no goroutine while no exchange is under way.
type Line[T any] struct {
	config Config[T]

	mu       sync.Mutex
	waiting  queue[T]
	all      []*Exchange[T] // that have not ended
	spare    []*Exchange[T] // that have ended, to be used again
	underWay int            // exchanges of all that count
	opening  bool           // open has been called
	pace     pace
}

// New returns an empty line.
func New[T any](config Config[T]) *Line[T] {
	return &Line[T]{config: config, pace: pace{atOnce: cmp.Or(config.AtOnce, fewest)}}
}

// Go sends the member, alone or with others. It returns at once.
func (l *Line[T]) Go(member T) {
	if e := l.enter(member); e != nil {
		go l.run(e)
	}
}

// Do sends the member alone, on the caller's goroutine, if nobody waits and no
// exchange is under way. It returns true when that has ended. Otherwise it does what
// Go does, and returns false.
func (l *Line[T]) Do(member T) bool {
	e := l.enter(member)
	if e == nil {
		return false
	}
	e.Here = true
	defer l.endHere(e) // also if Send panics
	l.config.Send(e)
	return true
}

// Push is called for a member whenever it has waited for Patience. From then on,
// exchanges that have been under way for that long do not count any more: their
// answers may never come, and nobody waits for them.
func (l *Line[T]) Push() {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := time.Now().Add(-l.config.Patience)
	for _, e := range l.all {
		if e.counts && !e.begun.After(before) && len(l.all)-l.underWay < l.config.MostStuck {
			l.uncount(e)
		}
	}
	l.startAll()
}

// Waiting returns how many members wait.
func (l *Line[T]) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting.n
}

// enter returns the exchange of the member alone, or nil if the member has to wait.
func (l *Line[T]) enter(member T) *Exchange[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.waiting.n > 0 && l.config.Gone(l.waiting.first()) {
		l.waiting.pop() // so that the queue is bounded if no exchange may begin
	}
	l.waiting.push(member)
	if l.underWay == 0 || l.config.Most == 1 {
		if l.waiting.n == 1 {
			return l.next()
		}
		l.startAll()
	} else if l.underWay < l.pace.atOnce && !l.opening {
		l.opening = true
		go l.open()
	}
	return nil
}

// open begins an exchange when all who are about to join the line have done so:
// the goroutines that could run before it was called. Callers whom one exchange has
// answered come again at the same time, and then share the next one.
func (l *Line[T]) open() {
	runtime.Gosched()
	l.mu.Lock()
	l.opening = false
	e := l.next()
	l.mu.Unlock()
	l.run(e)
}

// startAll starts exchanges with those who have waited longest, as many as may be
// under way.
func (l *Line[T]) startAll() {
	for e := l.next(); e != nil; e = l.next() {
		go l.run(e)
	}
}

// run sends the exchange, and after it those who wait, until nobody does.
func (l *Line[T]) run(e *Exchange[T]) {
	for e != nil {
		e = l.send(e)
	}
}

func (l *Line[T]) send(e *Exchange[T]) (next *Exchange[T]) {
	defer func() { next = l.end(e) }()
	l.config.Send(e)
	return nil
}

// endHere ends an exchange on the caller's goroutine, which sends no other.
func (l *Line[T]) endHere(e *Exchange[T]) {
	if next := l.end(e); next != nil {
		go l.run(next)
	}
}

// next returns an exchange of those who have waited longest; nil if there are none,
// or too many exchanges are under way.
func (l *Line[T]) next() *Exchange[T] {
	if l.waiting.n == 0 || l.underWay >= l.pace.atOnce {
		return nil
	}
	e := l.spareExchange()
	for l.waiting.n > 0 && len(e.Members) < l.config.Most {
		member := l.waiting.first()
		weight := l.config.Weight(member)
		if gone := l.config.Gone(member); !gone && len(e.Members) > 0 && e.weight+weight > l.config.MostWeight {
			break
		} else if !gone {
			e.Members, e.weight = append(e.Members, member), e.weight+weight
		}
		l.waiting.pop()
	}
	if len(e.Members) == 0 {
		l.spare = append(l.spare, e)
		return nil
	}
	e.place, e.begun, e.counts = len(l.all), time.Now(), true
	l.all = append(l.all, e)
	l.underWay++
	return e
}

// end ends an exchange and returns the next one, if there is one.
func (l *Line[T]) end(e *Exchange[T]) *Exchange[T] {
	took := time.Since(e.begun)
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.counts && l.config.AtOnce == 0 {
		l.pace.note(took - time.Duration(e.weight)*time.Microsecond)
	}
	l.uncount(e)
	last := len(l.all) - 1
	l.all[e.place], l.all[last].place = l.all[last], e.place
	l.all[last] = nil
	l.all = l.all[:last]
	clear(e.Members)
	*e = Exchange[T]{Members: e.Members[:0]}
	if len(l.spare) < mostSpare {
		l.spare = append(l.spare, e)
	}
	return l.next()
}

const mostSpare = 8

func (l *Line[T]) spareExchange() *Exchange[T] {
	n := len(l.spare)
	if n == 0 {
		return new(Exchange[T])
	}
	e := l.spare[n-1]
	l.spare = l.spare[:n-1]
	return e
}

func (l *Line[T]) uncount(e *Exchange[T]) {
	if e.counts {
		e.counts = false
		l.underWay--
	}
}

// Exchange is a number of members that are sent together.
type Exchange[T any] struct {
	// Members are in the order in which they came.
	Members []T
	// Here means that Do sends it, on the goroutine of its only member's caller.
	Here bool

	weight int
	begun  time.Time
	place  int  // in Line.all
	counts bool // it is one of those under way
}

// pace decides how many exchanges may be under way, from the time that the fastest
// of the last ones took, without the members' weights. Exchanges that wait for a
// busy server or process take longer, which is no reason to send more of them.
type pace struct {
	atOnce          int
	fastest, before time.Duration // of the running count, and of the one before; 0: none
	count           int
}

const (
	fewest = 2 // enough for one to be under way while the next is being made
	// spacing is the target interval between two exchanges at full concurrency.
	spacing = 100 * time.Microsecond
	// most is the highest number of exchanges under way, however far the server is.
	most = 12
	// counted is how many exchanges make up a count.
	counted = 256
)

func (p *pace) note(took time.Duration) {
	took = max(took, 1)
	if p.fastest == 0 || took < p.fastest {
		p.fastest = took
	}
	if p.count++; p.count == counted {
		p.before, p.fastest, p.count = p.fastest, 0, 0
	}
	t := p.fastest
	if t == 0 || p.before > 0 && p.before < t {
		t = p.before
	}
	p.atOnce = min(max(int(t/spacing), fewest), most)
}

// queue is a first-in, first-out queue.
type queue[T any] struct {
	ring    []T // its length is a power of two
	head, n int
}

func (q *queue[T]) push(x T) {
	if q.n == len(q.ring) {
		ring := make([]T, max(8, 2*len(q.ring)))
		for i := range q.n {
			ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
		}
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = x
	q.n++
}

func (q *queue[T]) first() T { return q.ring[q.head] }

func (q *queue[T]) pop() {
	var none T
	q.ring[q.head] = none
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
}
