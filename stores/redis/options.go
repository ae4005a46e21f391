package redisstore

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// DefaultTimeout is the deadline of an operation without [Timeout].
const DefaultTimeout = 100 * time.Millisecond

// Option changes the store that [New] makes.
type Option func(*options)

type options struct {
	timeout      time.Duration
	clock        func() time.Time
	slackMillis  uint32 // how much longer than needed a state is kept
	askAlways    bool
	apart        bool
	shardedByKey bool
	missing      bool // an option is nil
	log          *slog.Logger
}

// Timeout sets how long an operation may take: 1 ms or more. This includes
// waiting for a connection and repeating a command that did not run. It holds
// whatever the client's own timeouts and retries are.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// Clock makes the application's clock decide, instead of that of the Redis
// server. The clocks of all processes that share the counters may then differ by
// less than the shortest window: docs/concepts/algorithms.md says what is guaranteed.
// If they differ by a window or more, limits do not hold. It is for servers whose clock cannot be trusted, and for tests.
// States are then kept for a minute longer than they are needed, because a
// clock may be late.
func Clock(now func() time.Time) Option {
	return func(o *options) { o.clock, o.slackMillis = now, 60_000 }
}

// WithoutDenialCache makes the store ask Redis about every request, even for a
// key that it has just denied. Without this option a denial is remembered in
// the process for a second at most, and a Reset by another process takes effect
// here after that. See package
// github.com/floodgate-go/floodgate/stores/denycache.
func WithoutDenialCache() Option { return func(o *options) { o.askAlways = true } }

// Log sets where the store reports values that cannot be read, and panics of the
// client's hooks, each once a minute at most, and clocks that differ by a window or
// more, once: slog.Default() by default.
func Log(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// AnotherInstance lets the store count for limiters of the same names as
// another Store of this process on the same server. Without this option, Open
// returns an error for such a limiter, because two limiters that share their
// counters by accident deny each other's clients. It is for programs that are
// several instances at once, such as tests, benchmarks and tools that look into
// another program's counters.
func AnotherInstance() Option { return func(o *options) { o.apart = true } }

// ShardedByKey makes the store send each key in a command of its own, as it does
// for a [redis.Ring]. It is for a proxy before several servers that sends a command
// to the server of its first key, such as Envoy: the store cannot know that other
// keys of the command belong to other servers.
func ShardedByKey() Option { return func(o *options) { o.shardedByKey = true } }

// check returns all errors of New's arguments.
func (s *Store) check() error {
	var errs []error
	if v := reflect.ValueOf(s.client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		errs = append(errs, fmt.Errorf("%w: client: nil: must be a client, such as redis.NewClient(&redis.Options{Addr: \"localhost:6379\"})", core.ErrConfig))
	}
	if s.options.missing {
		errs = append(errs, fmt.Errorf("%w: an option is nil: write one such as redisstore.Timeout(time.Second), or none", core.ErrConfig))
	}
	if s.options.timeout < time.Millisecond {
		errs = append(errs, fmt.Errorf("%w: Timeout: %v: must be 1ms or more", core.ErrConfig, s.options.timeout))
	}
	return errors.Join(errs...)
}
