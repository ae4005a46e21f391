package resilient

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/nilcheck"
)

// Mode is how requests are decided while the store does not answer.
type Mode uint8

const (
	// Local counts in this process.
	Local Mode = iota
	// FailOpen allows every request and counts none.
	FailOpen
	// FailClosed returns an error: a limiter answers 503.
	FailClosed
)

var modes = [...]string{"local", "fail open", "fail closed"}

// String returns "local", "fail open" or "fail closed".
func (m Mode) String() string {
	if int(m) < len(modes) {
		return modes[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// The defaults of a Config.
const (
	DefaultTimeout  = 150 * time.Millisecond
	DefaultFailures = 5
	DefaultRetry    = time.Second
)

// MaxInstances is the largest Config.Instances.
const MaxInstances = 1 << 20

// Config configures [New]. The zero value works.
type Config struct {
	// OnFailure is how requests are decided while the store does not answer.
	OnFailure Mode
	// Instances is how many processes share the limits, for Local: each has its share of every
	// quota and burst, divided by Instances, rounded down, at least 1. With automatic scaling, set
	// the largest number that may run. 1 to MaxInstances; 0 means 1: each instance then allows the
	// whole quota.
	Instances int
	// MaxKeys is the most keys that Local counts at a time; 0 means core.DefaultMaxKeys.
	MaxKeys int
	// Timeout is how long an operation may take: its context then ends, and it counts as a failure.
	// 1 ms or more. 0 means the store's own deadline if it keeps one
	// (core.Guarantees.KeepsDeadline), as redisstore and memcachedstore do, else DefaultTimeout.
	// The shorter of two deadlines applies. ResetAll ends with its own context only.
	Timeout time.Duration
	// Failures is the number of failures in a row that opens the circuit: 1 or more; 0 means
	// DefaultFailures.
	Failures int
	// Retry is how long the circuit stays open before a request tries the store again: 1 ms or
	// more; 0 means DefaultRetry. A random part of up to a quarter is added, so that instances do
	// not come back at once.
	Retry time.Duration
	// OnChange is called when the circuit of the store, or of one of its servers, opens or closes.
	// It runs in the request that noticed it, without a lock. If OnChange takes as long as Retry,
	// changes may be reported in the wrong order.
	OnChange func(Change)
	// Log gets a line with the cause at the first failure, and a line when a circuit that has
	// opened closes again; nil: slog.Default(). A failure after a success that opens no circuit is
	// logged once a minute at most.
	Log *slog.Logger
	// Clock returns the time for the counters of this process; nil: the real time.
	Clock func() time.Time
}

// Change reports that a circuit has opened or closed.
type Change struct {
	// Server is the server concerned, "" if the store does not report its servers: see [Locator].
	Server string
	// Up reports whether the store answers again.
	Up bool
	// Err is the failure that opened the circuit; nil if Up.
	Err error
}

// check returns all errors of the configuration.
func (c Config) check(store core.Store) error {
	var errs []error
	bad := func(field string, value any, why string) {
		errs = append(errs, fmt.Errorf("%w: %s: %v: %s", core.ErrConfig, field, value, why))
	}
	if nilcheck.IsNil(store) {
		bad("Store", fmt.Sprintf("%T", store), "is nil: must be a store")
	}
	if c.OnFailure > FailClosed {
		bad("OnFailure", uint8(c.OnFailure), "must be Local, FailOpen or FailClosed")
	}
	if c.Instances < 0 || c.Instances > MaxInstances {
		bad("Instances", c.Instances, fmt.Sprintf("must be from 1 to %d, or 0 for 1", MaxInstances))
	}
	if c.OnFailure != Local && c.Instances > 1 {
		bad("Instances", c.Instances, "only Local counts in the process, and divides quotas")
	}
	if c.Timeout != 0 && c.Timeout < time.Millisecond {
		bad("Timeout", c.Timeout, fmt.Sprintf("must be 1ms or more, or 0 for %v", DefaultTimeout))
	}
	if c.Failures < 0 {
		bad("Failures", c.Failures, fmt.Sprintf("must be 1 or more, or 0 for %d", DefaultFailures))
	}
	if c.Retry != 0 && c.Retry < time.Millisecond {
		bad("Retry", c.Retry, fmt.Sprintf("must be 1ms or more, or 0 for %v", DefaultRetry))
	}
	return errors.Join(errs...)
}

// filled returns a valid configuration with defaults in place of zero values. A Timeout of 0 stays
// if the store keeps a deadline by itself.
func (c Config) filled(keepsDeadline bool) Config {
	c.Instances = max(c.Instances, 1)
	if c.Timeout == 0 && !keepsDeadline {
		c.Timeout = DefaultTimeout
	}
	if c.Failures == 0 {
		c.Failures = DefaultFailures
	}
	if c.Retry == 0 {
		c.Retry = DefaultRetry
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}
