package swapstore

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/internal/names"
)

// Swapper keeps values under names, and replaces a value only if no other
// writer has replaced it in between. [New] makes a [core.Store] of it.
// [core.StoreRule.StoredKey] makes the names. The methods may be called
// concurrently.
type Swapper interface {
	// Load returns the value of every name, in order, with a version for Swap. A
	// name that has no value gets the zero Value.
	Load(ctx context.Context, names []string) ([]Value, error)
	// Swap stores a value for a name if the version is still that of old, or if
	// old is the zero Value and the name still has no value. It returns whether
	// it has stored the value. The value must be kept for ttl or longer, and
	// may be dropped after that. After an error it is not known whether the
	// value was stored, unless the error wraps [core.ErrNotCharged]: then it was
	// not.
	Swap(ctx context.Context, name string, old Value, value []byte, ttl time.Duration) (bool, error)
	// Delete removes the values of the names. A name without a value is no
	// error.
	Delete(ctx context.Context, names []string) error
}

// Value is a value that a Swapper has loaded.
type Value struct {
	Value   []byte
	Version any // nil: the name has no value
}

// Config configures New. The zero value works.
type Config struct {
	// Clock returns the time of decisions. The clocks of all processes that share
	// the counters may differ by less than the shortest window: see Store.
	// nil: time.Now.
	Clock func() time.Time
	// Log gets a line, once a minute at most, if a stored value cannot be read, and
	// one if clocks differ by a window or more; nil: slog.Default().
	Log *slog.Logger
	// Attempts is how often an operation loads and swaps a value, if other
	// writers are faster, before it fails with core.ErrContended: 1 or more; 0
	// means 32.
	Attempts int
}

// Store is a [core.Store] made of a [Swapper].
//
// The state of all limits of one key of one rule is one value, so that a
// decision on one key is one step. Several keys are loaded together and swapped
// one by one: if a later key then turns out to be over its limit, the earlier
// ones are refunded.
//
// A value may also hold the states of limits that this program does not have:
// those of another version of the program, or of another program whose limiter
// and rule have the same names. A write keeps these states until they expire,
// at most 32 of them and 256 KiB. If there are more, those that expire first
// are dropped. A state that expires too far ahead, because a clock was wrong,
// is kept for three windows, or for about 100 years if its window is not known.
//
// The clocks of processes that share a store differ. If a stored time is less
// than one window ahead of the caller's clock, the decision is made at the
// stored time, and RetryAfter is counted from the caller's time.
// docs/choosing-a-limit.md says what is guaranteed then. If clocks differ by a
// window or more, limits do not hold, and the log says so once.
type Store struct {
	swapper  Swapper
	now      func() int64
	attempts int
	reports  reports

	names *names.Owner
}

// New returns a store that counts in s. The error wraps [core.ErrConfig].
func New(s Swapper, c Config) (*Store, error) {
	if s == nil {
		return nil, fmt.Errorf("%w: Swapper: nil: must be a Swapper", core.ErrConfig)
	}
	if v := reflect.ValueOf(s); nillable(v.Kind()) && v.IsNil() {
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
	now := meter.Clock(c.Clock)
	return &Store{
		swapper: s, now: now, attempts: c.Attempts,
		reports: reports{log: c.Log}, names: names.New("", true),
	}, nil
}

// nillable reports whether values of a kind can be nil.
func nillable(k reflect.Kind) bool {
	switch k {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return true
	default:
		return false
	}
}

// Bind implements [core.Store].
func (s *Store) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	if err := s.names.Claim(limiter); err != nil {
		return nil, fmt.Errorf("%w: Name: %q: %w", core.ErrConfig, limiter, err)
	}
	return newBound(s, limiter, rules), nil
}
