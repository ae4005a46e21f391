package redisstore

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// DefaultTimeout is the deadline of an operation where [Timeout] does not say.
const DefaultTimeout = 100 * time.Millisecond

// Option changes what [New] makes.
type Option func(*options)

type options struct {
	timeout     time.Duration
	clock       func() time.Time
	slackMillis any // an int64, boxed once: how much longer than needed a state is kept
	askAlways   bool
	apart       bool
	unreadable  core.Unreadable
	log         *slog.Logger
}

// Timeout sets how long an operation may take, waiting for a connection and
// repeating what did not run included: 1 ms or more. It holds whatever the
// client's own timeouts and retries are.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// Clock makes the application's clock decide, rather than that of the Redis
// server. The clocks of all processes that share the counters should then agree:
// README says what is promised if they differ by less than one window. It is for
// servers whose clock cannot be trusted, and for tests. States are then kept for
// a minute longer than they are needed, for clocks that are late.
func Clock(now func() time.Time) Option {
	return func(o *options) { o.clock, o.slackMillis = now, int64(60_000) }
}

// WithoutDenialCache makes the store ask Redis also about keys that it has just
// denied. Otherwise a denial is remembered in the process for a second at most,
// and a Reset by another process takes effect here after that. See package
// github.com/floodgate-go/floodgate/stores/denycache.
func WithoutDenialCache() Option { return func(o *options) { o.askAlways = true } }

// Unreadable sets what a value counts as that cannot be read: one that is not of
// the store's format, such as one that somebody else has written under the name
// of a counter. Values have no checksum: damage that leaves a value in the format
// is not noticed. The default is [core.ReplaceUnreadable].
func Unreadable(u core.Unreadable) Option { return func(o *options) { o.unreadable = u } }

// Log sets where the store reports values that cannot be read, once a minute at
// most: slog.Default() by default.
func Log(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// AnotherInstance lets the store count for limiters of the same names as another
// Store of this process does on the same server. Without it, that is an error of
// Bind: two limiters of a program that share their counters by accident deny each
// other's clients. It is for programs that are several instances at once, such as
// tests, benchmarks and tools that look into another program's counters.
func AnotherInstance() Option { return func(o *options) { o.apart = true } }

// check reports everything that is wrong with what New was given.
func (s *Store) check() error {
	var errs []error
	if v := reflect.ValueOf(s.client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		errs = append(errs, fmt.Errorf("%w: client: nil", core.ErrConfig))
	}
	if s.options.timeout < time.Millisecond {
		errs = append(errs, fmt.Errorf("%w: Timeout: %v: must be 1ms or more", core.ErrConfig, s.options.timeout))
	}
	if s.options.unreadable > core.DenyUnreadable {
		errs = append(errs, fmt.Errorf("%w: Unreadable: %v: must be core.ReplaceUnreadable or core.DenyUnreadable", core.ErrConfig, s.options.unreadable))
	}
	return errors.Join(errs...)
}
