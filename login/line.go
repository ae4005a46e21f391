package login

import (
	"context"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/keyfuncs"
)

// A client sends the password of Basic authentication with each request, and several requests at
// once. The limit of address and account charges each before the handler has judged it, so that it
// would deny the sixth, although all passwords are right. Therefore the requests of an address and
// account wait in a line: one is judged at a time until one has not failed, then as many as the
// quota of the limit. Waiting only delays the decision of the limits: it gives no further guess.
const (
	maxWait     = 10 * time.Second // the longest wait of a request
	mostWaiting = 1000             // in one line; the next request does not wait
	mostPlaces  = 100              // of a line, if the quota is larger
)

// lines are the lines of this process, one for each address and account that has requests.
// The methods may be called concurrently.
type lines struct {
	places int // of an open line
	mu     sync.Mutex
	all    map[string]*line
}

type line struct {
	key      string
	requests int           // that wait or are judged
	open     bool          // has all its places
	free     chan struct{} // has the free places
}

// enter puts an attempt into the line of its address and account, and waits for a place.
func (l *lines) enter(ctx context.Context, a *attempt) {
	key := keyfuncs.JoinKeys(a.address, a.account)
	l.mu.Lock()
	of := l.all[key]
	if of == nil {
		of = &line{key: key, free: make(chan struct{}, l.places)}
		of.free <- struct{}{}
		l.all[key] = of
	}
	of.requests++
	full := of.requests > l.places+mostWaiting
	l.mu.Unlock()
	a.line = of
	if full {
		return
	}
	end := time.NewTimer(maxWait)
	defer end.Stop()
	select {
	case <-of.free:
		a.placed = true
	case <-end.C:
	case <-ctx.Done():
	}
}

// leave takes an attempt out of its line.
func (l *lines) leave(a *attempt, r result) {
	of := a.line
	if of == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a.line = nil
	if a.placed {
		of.free <- struct{}{}
	}
	if r != failure && !of.open {
		of.open = true
		for range l.places - 1 {
			of.free <- struct{}{}
		}
	}
	if of.requests--; of.requests == 0 {
		delete(l.all, of.key)
	}
}
