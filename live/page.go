package live

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/nilcheck"
)

// Page is the page: an [http.Handler], and a [core.Observer] of the limiters that it shows. [New]
// makes it. Its methods may be called concurrently.
type Page struct {
	config Config
	csrf   *http.CrossOriginProtection

	mu       sync.Mutex
	limiters map[string]*limiter
	logins   map[string]Login
	frame    *frame // of the present second

	viewers chan struct{} // one for each browser that follows the page

	stop chan struct{} // closed by Close
	done chan struct{} // closed when the goroutine has ended
	once sync.Once
}

// Login is a login guard as the page needs it: a *login.Guard is one.
type Login interface {
	// Unblock forgets the failures of a username.
	Unblock(ctx context.Context, username string) error
	// UnblockAddress forgets the attempts of an IP address, such as "203.0.113.9".
	UnblockAddress(ctx context.Context, address string) error
}

// New returns a page. Close it when it is no longer served. The error wraps [core.ErrConfig].
func New(c Config) (*Page, error) {
	c, err := c.check()
	if err != nil {
		return nil, err
	}
	p := &Page{
		config: c, csrf: http.NewCrossOriginProtection(), limiters: map[string]*limiter{}, logins: map[string]Login{},
		viewers: make(chan struct{}, mostViewers), stop: make(chan struct{}), done: make(chan struct{}),
	}
	p.frame = p.newFrame(0)
	go p.run()
	return p, nil
}

// Close ends the page's goroutine and the events for browsers. A browser says so, and asks again
// with growing pauses. The limiters go on. The error is always nil.
func (p *Page) Close() error {
	p.once.Do(func() { close(p.stop) })
	<-p.done
	return nil
}

// run calls pass each second.
func (p *Page) run() {
	defer close(p.done)
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			p.pass()
		case <-p.stop:
			return
		}
	}
}

// pass notes what was counted in the second that has passed.
func (p *Page) pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	passed := p.frame
	p.frame = p.newFrame(passed.second + 1)
	for _, l := range p.limiters {
		l.pass(p.frame.second)
	}
	close(passed.passed)
}

// Manage lets the page look at keys of the limiters, and change them if [Config.Authorize] allows
// it. The page has counts of a limiter only if it is also the limiter's Observer. If several
// limiters have one name, the page shows the rules of the last one, and manages that one. Manage
// panics if one of the limiters is nil.
func (p *Page) Manage(limiters ...*core.Limiter) {
	if slices.Contains(limiters, nil) {
		panic("live: Manage: a limiter is nil: pass those that core.New has returned")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range limiters {
		p.named(l.Name()).manages.Store(l)
	}
}

// ManageLogin lets the page forget the failures of a login: of a *login.Guard, for instance. name
// is the name on the page. ManageLogin panics if l is nil.
func (p *Page) ManageLogin(name string, l Login) {
	if nilcheck.IsNil(l) {
		panic("live: ManageLogin: the login is nil: pass one that is not, such as the guard that login.NewGuard returns")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logins[name] = l
}

// named returns the limiter of that name. The caller holds mu.
func (p *Page) named(name string) *limiter {
	if p.limiters[name] == nil {
		p.limiters[name] = newLimiter(name, p.frame.second)
	}
	return p.limiters[name]
}
