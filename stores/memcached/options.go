package memcachedstore

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// DefaultTimeout is the deadline of an operation where [Timeout] does not say.
const DefaultTimeout = 200 * time.Millisecond

// DefaultIdleConnections is how many idle connections to each server are kept
// where [IdleConnections] does not say.
const DefaultIdleConnections = 256

// Option changes what [New] makes.
type Option func(*options)

type options struct {
	timeout   time.Duration
	idle      int
	clock     func() time.Time
	slack     time.Duration // how much longer than needed an item is kept
	askAlways bool
	apart     bool

	unreadable core.Unreadable
	log        *slog.Logger
}

func newOptions(opts []Option) options {
	o := options{timeout: DefaultTimeout, idle: DefaultIdleConnections, clock: time.Now, slack: 2 * time.Second}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Timeout sets how long an operation may take, all attempts included: 1 ms or
// more.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// IdleConnections sets how many idle connections to each server are kept for
// the next operations: 1 or more. With fewer than there are concurrent
// decisions, connections are made and closed all the time.
func IdleConnections(n int) Option { return func(o *options) { o.idle = n } }

// Clock sets the clock that decides, time.Now by default. Items are then kept
// for a minute longer than they are needed.
func Clock(now func() time.Time) Option {
	return func(o *options) { o.clock, o.slack = now, time.Minute }
}

// WithoutDenialCache makes the store ask memcached also about keys that it has just
// denied. Otherwise a denial is remembered in the process for a second at most,
// and a Reset by another process takes effect here after that. See package
// github.com/floodgate-go/floodgate/stores/denycache.
func WithoutDenialCache() Option { return func(o *options) { o.askAlways = true } }

// Unreadable sets what an item counts as that cannot be read: one that somebody
// else has written under the name of a counter, or that has been damaged. The
// default is [core.ReplaceUnreadable].
func Unreadable(u core.Unreadable) Option { return func(o *options) { o.unreadable = u } }

// Log sets where the store reports items that cannot be read, once a minute at
// most: slog.Default() by default.
func Log(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// AnotherInstance lets the store count for limiters of the same names as another
// Store of this process does on the same servers. Without it, that is an error of
// Bind: two limiters of a program that share their counters by accident deny each
// other's clients. It is for programs that are several instances at once, such as
// tests and benchmarks.
func AnotherInstance() Option { return func(o *options) { o.apart = true } }

func (o *options) check() error {
	var errs []error
	bad := func(field string, value any, why string) {
		errs = append(errs, fmt.Errorf("%w: %s: %v: %s", core.ErrConfig, field, value, why))
	}
	if o.timeout < time.Millisecond {
		bad("Timeout", o.timeout, "must be 1ms or more")
	}
	if o.idle < 1 {
		bad("IdleConnections", o.idle, "must be 1 or more")
	}
	if o.clock == nil {
		bad("Clock", nil, "must be a function")
	}
	if o.unreadable > core.DenyUnreadable {
		bad("Unreadable", o.unreadable, "must be core.ReplaceUnreadable or core.DenyUnreadable")
	}
	return errors.Join(errs...)
}
