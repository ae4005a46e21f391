package memcachedstore

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// DefaultTimeout is the deadline of an operation without [Timeout].
const DefaultTimeout = 200 * time.Millisecond

// DefaultIdleConnections is how many idle connections to each server are kept
// without [IdleConnections].
const DefaultIdleConnections = 256

// Option changes the store that [New] makes.
type Option func(*options)

type options struct {
	timeout   time.Duration
	idle      int
	clock     func() time.Time
	slack     time.Duration // how much longer than needed an item is kept
	askAlways bool
	apart     bool

	missing bool // an option is nil
	log     *slog.Logger
}

func newOptions(opts []Option) options {
	o := options{timeout: DefaultTimeout, idle: DefaultIdleConnections, clock: time.Now, slack: 2 * time.Second}
	for _, opt := range opts {
		if opt == nil {
			o.missing = true
			continue
		}
		opt(&o)
	}
	return o
}

// Timeout sets how long an operation may take, including all attempts: 1 ms or
// more.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// IdleConnections sets how many idle connections to each server are kept for
// the next operations: 1 or more. If there are more concurrent decisions than
// that, connections are made and closed all the time.
func IdleConnections(n int) Option { return func(o *options) { o.idle = n } }

// Clock sets the clock that decides, time.Now by default. With Clock, items are
// kept for a minute longer than they are needed.
func Clock(now func() time.Time) Option {
	return func(o *options) { o.clock, o.slack = now, time.Minute }
}

// WithoutDenialCache makes the store ask memcached about every request, even
// for a key that it has just denied. Without this option a denial is remembered
// in the process for a second at most, and a Reset by another process takes
// effect here after that. See package
// github.com/floodgate-go/floodgate/stores/denycache.
func WithoutDenialCache() Option { return func(o *options) { o.askAlways = true } }

// Log sets where the store reports items that cannot be read, once a minute at
// most, and clocks that differ by a window or more, once: slog.Default() by default.
func Log(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// AnotherInstance lets the store count for limiters of the same names as
// another Store of this process on the same servers. Without this option, Bind
// returns an error for such a limiter, because two limiters that share their
// counters by accident deny each other's clients. It is for programs that are
// several instances at once, such as tests and benchmarks.
func AnotherInstance() Option { return func(o *options) { o.apart = true } }

func (o *options) check() error {
	var errs []error
	bad := func(field string, value any, why string) {
		errs = append(errs, fmt.Errorf("%w: %s: %v: %s", core.ErrConfig, field, value, why))
	}
	if o.missing {
		errs = append(errs, fmt.Errorf("%w: an option is nil: write one such as memcachedstore.Timeout(time.Second), or none", core.ErrConfig))
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
	return errors.Join(errs...)
}
