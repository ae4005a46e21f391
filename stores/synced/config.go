package synced

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// The defaults of a Config.
const (
	DefaultNamespace = "default"
	DefaultTimeout   = time.Second
	DefaultMaxKeys   = 1_000_000
)

// MinInterval is the shortest Config.Interval.
const MinInterval = time.Millisecond

// Config configures [New].
type Config struct {
	// Namespace separates the users of one backend: 1 to 64 of the characters
	// A-Z a-z 0-9 _ . - ; "" means DefaultNamespace. A process can use a
	// namespace once for each Backend value.
	Namespace string
	// Interval is how often the process exchanges: MinInterval or more. The
	// first exchange comes after a random part of it, so that processes that
	// start together do not exchange together. 0: every decision asks the
	// backend. Negative: the process never exchanges and counts for itself. All
	// processes of a namespace should have the same Interval.
	Interval time.Duration
	// Windows are the lengths of windows of [Store.Increment] and [Store.Rate]. Limiters
	// have windows of their own.
	Windows []time.Duration
	// Timeout is how long a push of one batch, or with Interval 0 a decision,
	// may take: 1 ms or more; 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxKeys is the highest number of counters in the process, one for each key
	// and limit; 0 means DefaultMaxKeys. To make room, some counters are examined:
	// an expired one is evicted first, then the one with the fewest hits that were not
	// pushed, and of several such the lowest. Stats.Lost counts the hits that were
	// evicted before they were pushed. As many counters again may have been fetched
	// and not used yet.
	MaxKeys int
	// Log gets a line when exchanges or fetches begin to fail, and one when they work
	// again; nil: slog.Default().
	Log *slog.Logger
	// Clock returns the time; nil: the wall clock, also after it has been corrected.
	// The clocks of all processes must agree to much less than a window.
	Clock func() time.Time
}

func (c Config) check(backend Backend) error {
	var errs []error
	bad := func(field string, value any, why string) {
		errs = append(errs, fmt.Errorf("%w: %s: %v: %s", core.ErrConfig, field, value, why))
	}
	if backend == nil && c.Interval >= 0 {
		bad("backend", nil, "is needed, unless Interval is negative")
	}
	if backend != nil && !reflect.ValueOf(backend).Comparable() {
		bad("backend", fmt.Sprintf("%T", backend), "cannot be compared: use a pointer")
	}
	if !validNamespace(c.Namespace) {
		bad("Namespace", fmt.Sprintf("%q", c.Namespace), "must be 1 to 64 of the characters A-Z a-z 0-9 _ . -")
	}
	if c.Interval > 0 && c.Interval < MinInterval {
		bad("Interval", c.Interval, fmt.Sprintf("must be %v or more, 0 or negative", MinInterval))
	}
	for i, w := range c.Windows {
		if err := (core.Limit{Window: w}).Validate(); err != nil {
			bad(fmt.Sprintf("Windows[%d]", i), w, "must be whole microseconds from 1ms to 366 days")
		}
	}
	if c.Timeout != 0 && c.Timeout < time.Millisecond {
		bad("Timeout", c.Timeout, fmt.Sprintf("must be 1ms or more, or 0 for %v", DefaultTimeout))
	}
	if c.MaxKeys < 0 {
		bad("MaxKeys", c.MaxKeys, fmt.Sprintf("must be 1 or more, or 0 for %d", DefaultMaxKeys))
	}
	return errors.Join(errs...)
}

func (c Config) filled() Config {
	if c.Namespace == "" {
		c.Namespace = DefaultNamespace
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = DefaultMaxKeys
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

func validNamespace(s string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
	return len(s) <= 64 && strings.Trim(s, allowed) == "" // "" means the default
}
