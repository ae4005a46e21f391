package resilient

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Mode is how requests are decided if the store does not answer.
type Mode uint8

const (
	// ModeInProcess counts in this process.
	ModeInProcess Mode = iota
	// ModeOpen allows every request.
	ModeOpen
	// ModeClosed returns an error: a limiter answers 503.
	ModeClosed
)

// String returns "in process", "open" or "closed".
func (m Mode) String() string {
	switch m {
	case ModeInProcess:
		return "in process"
	case ModeOpen:
		return "open"
	case ModeClosed:
		return "closed"
	}
	return "unknown"
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
	// Meanwhile is how requests are decided if the store does not answer.
	Meanwhile Mode
	// Instances is how many processes share the limits, for ModeInProcess: each
	// counts with its quotas and bursts divided by Instances, rounded up. 1 to
	// MaxInstances; 0 means 1: each instance then admits the whole quota.
	Instances int
	// MaxKeys is the most keys that ModeInProcess counts at a time; 0 means
	// core.DefaultMaxKeys.
	MaxKeys int
	// Timeout is how long an operation may take before it counts as a failure:
	// 1 ms or more. 0 means the store's own deadline if it keeps one
	// (core.Traits.KeepsDeadline), as redisstore and memcachedstore do, else
	// DefaultTimeout. Of the two deadlines the shorter one holds.
	Timeout time.Duration
	// Failures is the number of failures in a row that opens the circuit: 1 or
	// more; 0 means DefaultFailures.
	Failures int
	// Retry is how long the circuit stays open before a request tries the store
	// again: 1 ms or more; 0 means DefaultRetry. Each Store lengthens it by a
	// random part of up to a quarter, so that many instances do not come back
	// at once.
	Retry time.Duration
	// OnChange is called when the store has stopped answering or answers again.
	// Calls come one after another, under no lock. The caller is the request
	// that has noticed the change, or the goroutine that charges the hits of an
	// outage, so OnChange should not take long. If it panics in that goroutine,
	// the panic is logged.
	OnChange func(Change)
	// Log gets a line with the cause at the first failure, and a line when the
	// store answers again; nil: slog.Default(). A failure after a success is
	// logged once a minute at most.
	Log *slog.Logger
	// Clock returns the time for ModeInProcess and ModeOpen; nil: the real
	// time.
	Clock func() time.Time
}

// Change reports that the store has stopped answering or answers again.
type Change struct {
	// Server is the server concerned, "" if the store does not report its
	// servers: see [Locator].
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
	if _, err := core.TraitsOf(store); err != nil {
		errs = append(errs, err)
	}
	if c.Meanwhile > ModeClosed {
		bad("Meanwhile", uint8(c.Meanwhile), "must be ModeInProcess, ModeOpen or ModeClosed")
	}
	if c.Instances < 0 || c.Instances > MaxInstances {
		bad("Instances", c.Instances, fmt.Sprintf("must be from 1 to %d, or 0 for 1", MaxInstances))
	}
	if c.Meanwhile != ModeInProcess && c.Instances > 1 {
		bad("Instances", c.Instances, "only ModeInProcess counts in the process, and divides quotas")
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

// filled returns the configuration with defaults in place of zero values.
func (c Config) filled() Config {
	if c.Instances == 0 {
		c.Instances = 1
	}
	if c.Timeout == 0 {
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
