package joining

import "time"

// Exchange is a number of members that are sent together.
type Exchange[T any] struct {
	// Members are in the order in which they came.
	Members []T
	// Here means that Do sends it, on the goroutine of its only member's caller.
	Here bool

	line   *Line[T]
	weight int
	begun  time.Time
	place  int  // in Line.all
	counts bool // it is one of those under way
	rested bool // Aside was called
}

// Aside calls f. Meanwhile the exchange does not count as under way: it waits for
// something else than the server's answer. Send may call it.
func (e *Exchange[T]) Aside(f func()) {
	l := e.line
	l.mu.Lock()
	e.rested = true
	l.uncount(e)
	l.startAll()
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.count(e)
	}()
	f()
}
