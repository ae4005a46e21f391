package login

import (
	"slices"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/usernames"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// A client sends the password of Basic authentication with each request, and several
// requests at once. The limit of address and account charges each before the handler has
// judged it, so that it would deny the sixth, although all passwords are right. In place
// of that, the sixth waits in a line until one of those before it has been judged. The
// limiter then decides again. So waiting gives no further guess.
//
// While the last request of the address and account has succeeded (memory.warm), as many
// requests again as the quota of Failures do not wait: they are not charged to the limit.

// maxWait is the longest time that a request waits in a line. mostWaiting is the most
// requests that wait in one line: the next one is denied.
const (
	maxWait     = 10 * time.Second
	mostWaiting = 1000
)

// lines are the lines of this process, one for each address and account. The methods may
// be called concurrently.
type lines struct {
	mu  sync.Mutex
	all map[string]*line
}

// line has the requests of an address and account between Check and Settle.
type line struct {
	key     string
	quota   int // of Config.Failures, or 1
	open    int // requests that do not wait: the limiter decides on them, or the handler judges them
	passed  int // those of them that are not charged
	judged  int // how many the handlers have judged
	waiting []chan struct{}
}

// place is the place of a request in its line.
type place struct {
	line   *line
	judged int // line.judged before the last decision on the request
}

// join puts a request with Basic authentication into the line of its address and account.
func (g *Guard) join(a *attempt) {
	user, err := BasicUser()(nil, a)
	if err != nil || len(user) == 0 {
		return
	}
	name, err := usernames.Plain(string(user))
	if err != nil {
		return
	}
	address, err := a.clientAddress(a)
	if err != nil {
		return
	}
	key := keyfuncs.JoinKeys(address, g.config.Normalize(name))
	l := &g.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]*line{}
	}
	if l.all[key] == nil {
		l.all[key] = &line{key: key, quota: int(max(g.config.Failures.Quota, 1))}
	}
	l.all[key].open++
	a.place = &place{l.all[key], l.all[key].judged}
}

// leave takes a request out of its line, and lets others decide again.
func (l *lines) leave(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.place == nil {
		return
	}
	line := a.place.line
	a.place = nil
	line.open--
	if a.passed {
		line.passed--
	}
	if a.settled.Load() {
		line.judged++
	}
	line.next()
	if line.open == 0 && len(line.waiting) == 0 {
		delete(l.all, line.key)
	}
}

// next wakes the requests that have waited longest, so that as many are open as the limit
// allows. Those that it wakes are open.
func (l *line) next() {
	for len(l.waiting) > 0 && l.open < l.quota {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		l.open++
	}
}

// inLine decides again on a request that the limit of address and account has denied
// while others of its line are open.
func (g *Guard) inLine(a *attempt, d core.Decision) core.Decision {
	end := time.NewTimer(maxWait)
	defer end.Stop()
	for exceeds(d, rulePair) && (g.pass(a) || g.lines.wait(a, end.C)) {
		d = g.again(a, d)
	}
	return d
}

// pass lets a request through that is not charged to the limit of address and account.
func (g *Guard) pass(a *attempt) bool {
	warm := g.memory.warm(a)
	g.lines.mu.Lock()
	defer g.lines.mu.Unlock()
	if a.passed = warm && a.place.line.passed < a.place.line.quota; a.passed {
		a.place.line.passed++
	}
	return a.passed
}

// wait returns true when a request of the line has been judged since the last decision on
// a, and false if none will be, or if the wait ends.
func (l *lines) wait(a *attempt, end <-chan time.Time) bool {
	l.mu.Lock()
	line := a.place.line
	if line.judged == a.place.judged {
		if line.open == 1 || len(line.waiting) >= mostWaiting {
			l.mu.Unlock()
			return false
		}
		turn := make(chan struct{})
		line.waiting = append(line.waiting, turn)
		line.open--
		l.mu.Unlock()
		woken := true
		select {
		case <-turn:
		case <-end:
			woken = false
		case <-a.Context().Done():
			woken = false
		}
		l.mu.Lock()
		if i := slices.Index(line.waiting, turn); i >= 0 { // nobody has woken it
			line.waiting = slices.Delete(line.waiting, i, i+1)
			line.open++
		}
		if !woken {
			l.mu.Unlock()
			return false
		}
	}
	a.place.judged = line.judged
	l.mu.Unlock()
	return true
}
