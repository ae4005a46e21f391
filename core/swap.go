package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"
)

// Swapper is what a store outside the process must be able to do at the least,
// for [NewSwapStore] to make a [Store] of it: keep values under names, and
// replace one only if nobody else has in between. Its methods may be called
// concurrently. Names are as [StoredKey] makes them.
type Swapper interface {
	// Load returns the value of every name, in order, and with it a version
	// that Swap takes; of a name that has none, the zero SwapValue.
	Load(ctx context.Context, names []string) ([]SwapValue, error)
	// Swap stores a value for a name whose version is still old's (for the
	// zero SwapValue: that has no value), and tells whether it has. The value
	// must be kept for ttl at least, and may be dropped after that. After an
	// error it is not known whether the value was stored.
	Swap(ctx context.Context, name string, old SwapValue, value []byte, ttl time.Duration) (bool, error)
	// Delete forgets the values of the names; those without one are no error.
	Delete(ctx context.Context, names []string) error
}

// SwapValue is a value as a Swapper has loaded it.
type SwapValue struct {
	Value   []byte
	Version any // nil: the name has no value
}

// SwapConfig configures NewSwapStore. The zero value works.
type SwapConfig struct {
	// Clock tells the time of decisions. The clocks of all processes that share
	// the counters should agree: see SwapStore for what happens if they differ.
	// nil: time.Now.
	Clock func() time.Time
	// Unreadable says what a stored value that cannot be read counts as. The
	// zero value is ReplaceUnreadable.
	Unreadable Unreadable
	// Log gets a line, once a minute at most, if a stored value cannot be read;
	// nil: slog.Default().
	Log *slog.Logger
	// Attempts is how often a value is loaded and swapped when others are
	// faster, before the operation fails with ErrContended: 1 or more; 0 means
	// 32.
	Attempts int
}

// ErrContended is wrapped by the error of an operation that others have
// overtaken too often. Nothing has been charged.
var ErrContended = errors.New("floodgate: too many others changed the counter meanwhile")

// SwapStore is a [Store] made of a [Swapper].
//
// The state of all limits of one key of one rule is one value, so that one key
// is decided on in one step. Several keys are loaded together and swapped one
// by one: if a later one then turns out to be over its limit, the earlier ones
// are refunded.
//
// A value may also hold the states of limits that this program does not have:
// those of another version of the program, or of another program whose limiter
// and rule have the same names. A write keeps them until they expire. It keeps
// 32 of them and 256 KiB at most, and drops those first that expire first.
//
// The clocks of processes that share a store differ. Of a clock that is behind,
// a stored time less than one window ahead is believed: the decision is made at
// the stored time, and RetryAfter is counted from the caller's own. See README
// for what is promised of clocks that differ by less than one window.
type SwapStore struct {
	swapper    Swapper
	now        func() int64
	attempts   int
	unreadable Unreadable
	reports    unreadableReports

	mu    sync.Mutex
	names map[string]bool
}

// NewSwapStore returns a store that counts in s. The error wraps [ErrConfig].
func NewSwapStore(s Swapper, c SwapConfig) (*SwapStore, error) {
	if s == nil {
		return nil, fmt.Errorf("%w: Swapper: nil: must be a Swapper", ErrConfig)
	}
	if isNil(reflect.ValueOf(s)) {
		return nil, fmt.Errorf("%w: Swapper: %T: is nil: must be a Swapper", ErrConfig, s)
	}
	if c.Attempts < 0 {
		return nil, fmt.Errorf("%w: Attempts: %d: must be 1 or more, or 0 for 32", ErrConfig, c.Attempts)
	}
	if err := c.Unreadable.check(); err != nil {
		return nil, err
	}
	if c.Attempts == 0 {
		c.Attempts = 32
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	now := microClock(c.Clock)
	return &SwapStore{
		swapper: s, now: now, attempts: c.Attempts, unreadable: c.Unreadable,
		reports: unreadableReports{log: c.Log}, names: map[string]bool{},
	}, nil
}

// Bind implements [Store].
func (s *SwapStore) Bind(limiter string, rules []StoreRule) (Bound, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[limiter] {
		return nil, fmt.Errorf("%w: Name: %q: this store already counts for a limiter of that name", ErrConfig, limiter)
	}
	s.names[limiter] = true
	return newSwapBound(s, limiter, rules), nil
}
