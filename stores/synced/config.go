package synced

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/nilcheck"
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
	// Namespace separates the users of one backend: 1 to 64 of the characters A-Z a-z 0-9 _ . - and
	// "" means DefaultNamespace. A process can use a namespace once for each Backend value.
	Namespace string
	// Interval is how often the process exchanges: MinInterval or more. The first exchange comes
	// after a random part of it, so that processes that start together do not exchange together. 0:
	// every decision asks the backend. Negative: the process never exchanges and counts for itself.
	// All processes of a namespace should have the same Interval.
	Interval time.Duration
	// Windows are the lengths of windows of [Store.Increment] and [Store.Rate]. Limiters have
	// windows of their own.
	Windows []time.Duration
	// Timeout is how long a push of one batch or a fetch may take: its context then ends. 1 ms or
	// more; 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxKeys is the highest number of counters in the process, one for each key and limit; 0 means
	// DefaultMaxKeys, less than 64 means 64. A full table examines a few counters, and evicts an
	// expired one, or else the one with the fewest unpushed hits: Stats.Lost counts them. As many
	// counters again may have been fetched and not used yet.
	MaxKeys int
	// Log gets a line when the backend begins to fail, and one when it works again; nil:
	// slog.Default().
	Log *slog.Logger
	// Clock returns the time; nil: the wall clock, including its corrections. The clocks of all
	// processes must differ by much less than a window.
	Clock func() time.Time
}

func (c Config) check(backend Backend) error {
	var errs []error
	bad := func(wrong bool, field string, value any, why string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("%w: %s: %v: %s", core.ErrConfig, field, value, fmt.Sprintf(why, args...)))
		}
	}
	bad(nilcheck.IsNil(backend) && c.Interval >= 0, "backend", nil, "is needed, unless Interval is negative")
	bad(backend != nil && !reflect.ValueOf(backend).Comparable(), "backend", fmt.Sprintf("%T", backend), "cannot be compared: use a pointer")
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
	bad(len(c.Namespace) > 64 || strings.Trim(c.Namespace, letters) != "", "Namespace", fmt.Sprintf("%q", c.Namespace), "must be 1 to 64 of the characters A-Z a-z 0-9 _ . -")
	bad(c.Interval > 0 && c.Interval < MinInterval, "Interval", c.Interval, "must be %v or more, 0 or negative", MinInterval)
	for i, w := range c.Windows {
		bad((core.Limit{Window: w}).Validate() != nil, fmt.Sprintf("Windows[%d]", i), w, "must be whole microseconds from 1ms to 366 days")
	}
	bad(c.Timeout != 0 && c.Timeout < time.Millisecond, "Timeout", c.Timeout, "must be 1ms or more, or 0 for %v", DefaultTimeout)
	bad(c.MaxKeys < 0, "MaxKeys", c.MaxKeys, "must be 1 or more, or 0 for %d", DefaultMaxKeys)
	return errors.Join(errs...)
}

func (c Config) filled() Config {
	c.Namespace = cmp.Or(c.Namespace, DefaultNamespace)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.MaxKeys = cmp.Or(c.MaxKeys, DefaultMaxKeys)
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}
