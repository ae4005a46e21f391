package login

import (
	"slices"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/keyfuncs"
)

// A client sends the password of Basic authentication with each request, and several
// requests at once. The limit of address and account charges each before the handler has
// judged it, so that it would deny the sixth, although all passwords are right. Therefore
// the sixth waits in a line until one of those before it has been judged. A wait only delays
// the decision of the limits, so that waiting gives no further guess.
//
// If the last request of the line has succeeded within warmFor, as many requests again do
// not wait and are not charged to the limit of address and account.
const (
	warmFor     = time.Minute
	maxWait     = 10 * time.Second // the longest wait of a request
	mostWaiting = 1000             // in one line; the next request does not wait
	mostLines   = 100_000          // that are kept for what they know of the last minute
)

// lines are the lines of this process, one for each address and account. The methods may
// be called concurrently.
type lines struct {
	now   func() time.Time
	quota int // of Config.Failures, or 1

	mu    sync.Mutex
	all   map[string]*line
	sweep int // the number of lines at which those that know nothing are removed
}

// line has the requests of an address and account between their decision and their result.
type line struct {
	open    int // requests that have been let through
	passed  int // those of them that are not charged
	waiting []chan struct{}

	until  time.Time // the end of what follows
	warm   bool      // the last request has succeeded
	failed int       // failures since then
}

// enter puts an attempt into the line of its address and account, and waits until the limit
// has room for it.
func (l *lines) enter(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := keyfuncs.JoinKeys(a.address, a.account)
	of := l.all[key]
	if of == nil {
		of = &line{}
		l.add(key, of)
	}
	a.line = of
	if !l.room(of) && len(of.waiting) < mostWaiting {
		l.wait(of, a)
	}
	of.open++
	if l.warm(of) && of.open-of.passed > l.quota && of.passed < l.quota {
		of.passed++
		a.passed = true
	}
}

// room reports whether the line lets another request through.
func (l *lines) room(of *line) bool {
	switch {
	case l.warm(of):
		return of.open < 2*l.quota
	case l.now().Before(of.until):
		return of.open < max(1, l.quota-of.failed)
	}
	return of.open < l.quota
}

func (l *lines) warm(of *line) bool { return of.warm && l.now().Before(of.until) }

// wait waits until the line has room, the client has gone or maxWait has passed.
func (l *lines) wait(of *line, a *attempt) {
	turn := make(chan struct{})
	of.waiting = append(of.waiting, turn)
	l.mu.Unlock()
	end := time.NewTimer(maxWait)
	defer end.Stop()
	select {
	case <-turn:
	case <-end.C:
	case <-a.Context().Done():
	}
	l.mu.Lock()
	if i := slices.Index(of.waiting, turn); i >= 0 {
		of.waiting = slices.Delete(of.waiting, i, i+1)
	} else {
		of.open-- // leave has kept the room for it
	}
}

// leave takes an attempt out of its line. result is neither if the handler has not judged it.
func (l *lines) leave(a *attempt, r result) {
	if a.line == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	of := a.line
	a.line = nil
	of.open--
	if a.passed {
		of.passed--
	}
	switch r {
	case success:
		of.warm, of.failed, of.until = true, 0, l.now().Add(warmFor)
	case failure:
		of.warm, of.failed, of.until = false, of.failed+1, l.now().Add(warmFor)
	case neither:
	}
	for len(of.waiting) > 0 && l.room(of) {
		close(of.waiting[0])
		of.waiting = of.waiting[1:]
		of.open++
	}
}

// add adds a line. It removes lines that know nothing when their number has doubled.
func (l *lines) add(key string, of *line) {
	if l.all == nil {
		l.all = map[string]*line{}
	}
	if len(l.all) >= max(l.sweep, 16) {
		for k, other := range l.all {
			if other.open == 0 && len(other.waiting) == 0 && (len(l.all) > mostLines || !l.now().Before(other.until)) {
				delete(l.all, k)
			}
		}
		l.sweep = 2 * len(l.all)
	}
	l.all[key] = of
}
