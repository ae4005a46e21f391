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

// What the zero values of a Config stand for.
const (
	DefaultNamespace = "default"
	DefaultTimeout   = time.Second
	DefaultBatchSize = 1000
	DefaultMaxKeys   = 1_000_000
)

// MinInterval is the shortest Config.Interval.
const MinInterval = time.Millisecond

// Config configures [New].
type Config struct {
	// Namespace separates the users of one backend: 1 to 64 of the characters
	// A-Z a-z 0-9 _ . - ; "" means DefaultNamespace. A process can use it once
	// for each backend.
	Namespace string
	// Interval is how often differences are exchanged: MinInterval or more.
	// 0: never; every decision asks the backend. Negative: never; this process
	// counts for itself.
	Interval time.Duration
	// Windows are lengths of windows whose counters are fetched when the store
	// starts, so that a new process knows what the others have counted, beside
	// those that limiters are bound with before the first exchange.
	Windows []time.Duration
	// Near forces an exchange when a key has used so many per cent of a limit:
	// 1 to 100; 0: none is forced.
	Near int
	// Timeout is how long an exchange, or with Interval 0 a decision, may take:
	// 1 ms or more; 0 means DefaultTimeout.
	Timeout time.Duration
	// BatchSize is the most differences that are pushed at once: 1 or more; 0
	// means DefaultBatchSize. What has changed in one interval takes as many
	// batches as it needs.
	BatchSize int
	// MaxKeys is the most counters that are held at a time, one for each key
	// and limit; 0 means DefaultMaxKeys. Above it, expired ones go first, then
	// those that the backend has anyway, then any: Stats.Lost counts the hits
	// that go with them.
	MaxKeys int
	// Log gets one line when exchanges begin to fail and one when they work
	// again; nil: slog.Default().
	Log *slog.Logger
	// Clock tells the time; nil: the process's monotonic clock, set by the
	// wall clock when it started. The clocks of all processes must agree to
	// much less than a window.
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
	if c.Near < 0 || c.Near > 100 {
		bad("Near", c.Near, "must be from 1 to 100 per cent, or 0 for never")
	}
	if c.Timeout != 0 && c.Timeout < time.Millisecond {
		bad("Timeout", c.Timeout, fmt.Sprintf("must be 1ms or more, or 0 for %v", DefaultTimeout))
	}
	if c.BatchSize < 0 {
		bad("BatchSize", c.BatchSize, fmt.Sprintf("must be 1 or more, or 0 for %d", DefaultBatchSize))
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
	if c.BatchSize == 0 {
		c.BatchSize = DefaultBatchSize
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
