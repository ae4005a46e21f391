// Package joining lets callers who want to send something at about the same time send it together:
// in one exchange with a server, instead of one each.
//
// A [Line] limits how many exchanges are under way. Below the limit, a member is sent at once: it
// does not wait for others to come. At the limit, members wait, and go together with the next
// exchange, in the order in which they came. The limit follows from the time that an exchange
// takes: 2 for a server that answers in 100 µs, 10 for one that answers in 1 ms, and never more
// than 12.
//
// The package knows nothing of what is sent, of deadlines or of errors. A member that nobody wants
// to be sent any more is left out: see [Config.Gone].
package joining

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Config says how a [Line] sends. Its functions may be called concurrently.
type Config[T any] struct {
	// Send sends the members in one exchange, in the order in which they came, and returns when it
	// has ended. The members are its own.
	Send func(members []T)
	// Weight returns how many microseconds a member adds to an exchange: 1 or more. It is called
	// while the line is locked.
	Weight func(member T) int
	// Gone reports whether a member need not be sent any more; it is then dropped. It is called
	// while the line is locked.
	Gone func(member T) bool
	// Most is the largest number of members in an exchange, and MostWeight the largest weight of an
	// exchange of two or more.
	Most, MostWeight int
	// AtOnce is how many exchanges are under way before anybody has to wait. If it is 0, it follows
	// from the time that exchanges take.
	AtOnce int
	// Patience is how long an exchange may take before it is stuck: see Push.
	Patience time.Duration
	// MostStuck is how many exchanges may be stuck at a time.
	MostStuck int
}

// Line joins members into exchanges. Its methods may be called concurrently. It has no goroutine
// while no exchange is under way.
type Line[T any] struct {
	config Config[T]

	mu       sync.Mutex
	waiting  []T            // in the order in which they came
	all      []*exchange[T] // that have not ended
	underWay int            // exchanges of all that count
	opening  bool           // open has been called
	pace     pace
}

// exchange is a number of members that are sent together.
type exchange[T any] struct {
	members []T
	weight  int
	begun   time.Time
	place   int  // in Line.all
	counts  bool // it is one of those under way
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

// Do sends the member alone, on the caller's goroutine, if nobody waits and no exchange is under
// way. It returns when that has ended. Otherwise it does what Go does.
func (l *Line[T]) Do(member T) {
	e := l.enter(member)
	if e == nil {
		return
	}
	defer func() { // also if Send panics
		if next := l.end(e); next != nil {
			go l.run(next)
		}
	}()
	l.config.Send(e.members)
}

// Push is called for a member whenever it has waited for Patience. From then on, exchanges that
// have been under way for that long do not count any more: their answers may never come, and nobody
// waits for them.
func (l *Line[T]) Push() {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := time.Now().Add(-l.config.Patience)
	for _, e := range l.all {
		if e.counts && !e.begun.After(before) && len(l.all)-l.underWay < l.config.MostStuck {
			e.counts = false
			l.underWay--
		}
	}
	l.startAll()
}

// Waiting returns how many members wait.
func (l *Line[T]) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// enter returns the exchange of the member alone, or nil if the member has to wait.
func (l *Line[T]) enter(member T) *exchange[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := 0 // those in front, so that the line is bounded if no exchange may begin
	for gone < len(l.waiting) && l.config.Gone(l.waiting[gone]) {
		gone++
	}
	l.waiting = append(slices.Delete(l.waiting, 0, gone), member)
	if l.underWay == 0 || l.config.Most == 1 {
		if len(l.waiting) == 1 {
			return l.next()
		}
		l.startAll()
	} else if l.underWay < l.pace.atOnce && !l.opening {
		l.opening = true
		go l.open()
	}
	return nil
}

// open begins an exchange when all who are about to join the line have done so: the goroutines that
// could run before it was called. Callers whom one exchange has answered come again at the same
// time, and then share the next one.
func (l *Line[T]) open() {
	runtime.Gosched()
	l.mu.Lock()
	l.opening = false
	e := l.next()
	l.mu.Unlock()
	l.run(e)
}

// startAll starts exchanges with those who have waited longest, as many as may be under way.
func (l *Line[T]) startAll() {
	for e := l.next(); e != nil; e = l.next() {
		go l.run(e)
	}
}

// run sends the exchange, and after it those who wait, until nobody does.
func (l *Line[T]) run(e *exchange[T]) {
	for e != nil {
		l.config.Send(e.members)
		e = l.end(e)
	}
}

// next returns an exchange of those who have waited longest; nil if there are none, or too many
// exchanges are under way.
func (l *Line[T]) next() *exchange[T] {
	if len(l.waiting) == 0 || l.underWay >= l.pace.atOnce {
		return nil
	}
	e := &exchange[T]{members: make([]T, 0, min(len(l.waiting), l.config.Most)), counts: true}
	taken := 0
	for _, member := range l.waiting {
		if !l.config.Gone(member) {
			weight := l.config.Weight(member)
			if n := len(e.members); n == l.config.Most || n > 0 && e.weight+weight > l.config.MostWeight {
				break
			}
			e.members, e.weight = append(e.members, member), e.weight+weight
		}
		taken++
	}
	l.waiting = slices.Delete(l.waiting, 0, taken)
	if len(e.members) == 0 {
		return nil
	}
	e.place, e.begun = len(l.all), time.Now()
	l.all = append(l.all, e)
	l.underWay++
	return e
}

// end ends an exchange and returns the next one, if there is one.
func (l *Line[T]) end(e *exchange[T]) *exchange[T] {
	took := time.Since(e.begun)
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.counts {
		l.underWay--
		if l.config.AtOnce == 0 {
			l.pace.note(took - time.Duration(e.weight)*time.Microsecond)
		}
	}
	last := l.all[len(l.all)-1]
	l.all[e.place], last.place = last, e.place
	l.all = slices.Delete(l.all, len(l.all)-1, len(l.all))
	return l.next()
}

// pace decides how many exchanges may be under way, from the time that the fastest of the last ones
// took, without the members' weights. Exchanges that wait for a busy server or process take longer,
// which is no reason to send more of them.
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
