// Package swapstore makes a [core.Store] of any database that keeps values under names and can
// replace a value only if no other writer has replaced it in between: a database with
// compare-and-swap, or with a version for each row. It counts with the same arithmetic as the other
// stores.
//
// A take costs one load, and one swap for each key of a rule; more if other writers are faster. For
// Redis and memcached use stores/redis and stores/memcached.
//
//	store, err := swapstore.New(mySwapper{db}, swapstore.Config{})
//	limiter, err := core.New(core.Config{Name: "jobs", Rules: rules, Store: store})
package swapstore

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/internal/names"
	"github.com/floodgate-go/floodgate/internal/nilcheck"
)

// Swapper keeps values under names, and replaces a value only if no other writer has replaced it in
// between. [New] makes a [core.Store] of it. [core.StoreRule.StoredKey] makes the names. The
// methods may be called concurrently. Refunds of a take run with a context that does not end, so a
// Swapper needs a deadline of its own.
type Swapper interface {
	// Load returns the value of every name, in order, with a version for Swap. A name that has no
	// value gets the zero Value.
	Load(ctx context.Context, names []string) ([]Value, error)
	// Swap stores a value for a name if the version is still that of old, or if old is the zero
	// Value and the name still has no value. It returns whether it has stored the value. The value
	// must be kept for ttl or longer, and may be dropped after that. After an error the value may
	// have been stored, unless the error wraps [core.ErrNotCharged].
	Swap(ctx context.Context, name string, old Value, value []byte, ttl time.Duration) (bool, error)
	// Delete removes the values of the names. A name without a value is no error.
	Delete(ctx context.Context, names []string) error
}

// Value is a value that a Swapper has loaded.
type Value struct {
	Value   []byte
	Version any // nil: the name has no value
}

// Config configures New. The zero value works.
type Config struct {
	// Clock returns the time of decisions. The clocks of all processes that share the counters may
	// differ by less than the shortest window: see Store. nil: time.Now.
	Clock func() time.Time
	// Log gets a line, once a minute at most, if a stored value cannot be read, and one if clocks
	// differ by a window or more; nil: slog.Default().
	Log *slog.Logger
	// Attempts is how often an operation loads and swaps a value, if other writers are faster,
	// before it fails with core.ErrContended: 1 or more; 0 means 32.
	Attempts int
}

// Store is a [core.Store] made of a [Swapper].
//
// The state of all limits of one key of one rule is one value, so that a decision on one key is one
// step. Several keys are loaded together and swapped one by one: if a later key is then over its
// limit, the earlier ones are refunded.
//
// A value may also hold the states of limits that this program does not have: those of another
// version of the program, or of another program whose limiter and rule have the same names. A write
// keeps these states until they expire, at most the 32 that were written last.
//
// If a stored time is less than one window ahead of the caller's clock, the decision is made at the
// stored time, and RetryAfter is counted from the caller's time. docs/concepts/algorithms.md says
// what is guaranteed then. If clocks differ by a window or more, limits do not hold, and the log
// says so.
type Store struct {
	swapper  Swapper
	now      func() int64
	attempts int
	names    *names.Owner

	log    *slog.Logger // nil: slog.Default() at the time of the line
	mu     sync.Mutex
	silent map[string]int64 // until when each message is not logged again
}

// New returns a store that counts in s. The error wraps [core.ErrConfig].
func New(s Swapper, c Config) (*Store, error) {
	if nilcheck.IsNil(s) {
		return nil, fmt.Errorf("%w: Swapper: %T: is nil: must be a Swapper", core.ErrConfig, s)
	}
	if c.Attempts < 0 {
		return nil, fmt.Errorf("%w: Attempts: %d: must be 1 or more, or 0 for 32", core.ErrConfig, c.Attempts)
	}
	if c.Attempts == 0 {
		c.Attempts = 32
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return &Store{
		swapper: s, now: meter.Clock(c.Clock), attempts: c.Attempts, names: names.New("", true),
		log: c.Log, silent: map[string]int64{},
	}, nil
}

// Open implements [core.Store].
func (s *Store) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	if err := s.names.Claim(limiter); err != nil {
		return nil, fmt.Errorf("%w: Name: %q: %w", core.ErrConfig, limiter, err)
	}
	return newCounters(s, limiter, rules), nil
}

// Guarantees implements [core.Store]. A Store is as exact as compare-and-swap, and returns the
// Swapper's errors. It has no deadline but the Swapper's.
func (s *Store) Guarantees() core.Guarantees {
	return core.Guarantees{Ops: core.AllOps &^ core.OpResetAll, Exact: true, Shared: true, OnFailure: core.FailClosed}
}

// warn logs a message, once a minute at most. A clock that is set back does not silence it.
func (s *Store) warn(now int64, message string, args ...any) {
	const minute = 60_000_000
	s.mu.Lock()
	until := s.silent[message]
	silent := now < until && until-now <= minute
	if !silent {
		s.silent[message] = now + minute
	}
	s.mu.Unlock()
	if silent {
		return
	}
	log := s.log
	if log == nil {
		log = slog.Default()
	}
	log.Warn(message, args...)
}
