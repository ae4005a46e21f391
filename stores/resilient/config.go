package resilient

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Meanwhile is how requests are decided while the store does not answer.
type Meanwhile uint8

const (
	// InProcess counts in this process.
	InProcess Meanwhile = iota
	// Open lets everything through.
	Open
	// Closed answers with an error: a limiter makes 503 of it.
	Closed
)

// String returns "in process", "open" or "closed".
func (m Meanwhile) String() string {
	switch m {
	case InProcess:
		return "in process"
	case Open:
		return "open"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// What the zero values of a Config stand for.
const (
	DefaultTimeout  = 150 * time.Millisecond
	DefaultFailures = 5
	DefaultRetry    = time.Second
)

// MaxInstances is the largest Config.Instances.
const MaxInstances = 1 << 20

// Config configures [New]. The zero value works.
type Config struct {
	// Meanwhile is how requests are decided while the store does not answer.
	Meanwhile Meanwhile
	// Instances is how many processes share the limits, for InProcess: each
	// counts with quotas and bursts divided by it, rounded up. 1 to
	// MaxInstances; 0 means 1: each instance then admits the whole quota.
	Instances int
	// MaxKeys is the most keys that InProcess counts at a time; 0 means
	// core.DefaultMaxKeys.
	MaxKeys int
	// Timeout is how long an operation may take before the store counts as not
	// answering: 1 ms or more. 0 means the store's own deadline if it keeps one
	// (core.Traits.KeepsDeadline), as redisstore and memcachedstore do, else
	// DefaultTimeout. Of the two deadlines the shorter one holds.
	Timeout time.Duration
	// Failures is after how many failures in a row the store is not asked any
	// more: 1 or more; 0 means DefaultFailures.
	Failures int
	// Retry is how long the store is then left alone before a request tries
	// it again: 1 ms or more; 0 means DefaultRetry. Each Store lengthens it by a
	// random part of up to a quarter, so that many instances do not come back
	// at once.
	Retry time.Duration
	// OnChange is called when the store has stopped or begun to answer, one
	// call after the other and under no lock, by whichever request has found
	// it out: it should not take long.
	OnChange func(Change)
	// Log gets a line with the cause when the store fails for the first time,
	// at once, and one when it answers again; nil: slog.Default(). A failure
	// after a success is logged once a minute at most.
	Log *slog.Logger
	// Clock tells the time of InProcess and Open; nil: the real time.
	Clock func() time.Time
}

// Change says that the store has stopped or begun to answer.
type Change struct {
	// Server is the server that has, "" if the store does not tell its servers
	// apart: see [Locator].
	Server string
	// Up says that the store answers again.
	Up bool
	// Err is the failure after which it was given up; nil where Up.
	Err error
}

// check reports everything that is wrong.
func (c Config) check(store core.Store) error {
	var errs []error
	bad := func(field string, value any, why string) {
		errs = append(errs, fmt.Errorf("%w: %s: %v: %s", core.ErrConfig, field, value, why))
	}
	if err := core.CheckStore(store); err != nil {
		errs = append(errs, err)
	}
	if c.Meanwhile > Closed {
		bad("Meanwhile", uint8(c.Meanwhile), "must be InProcess, Open or Closed")
	}
	if c.Instances < 0 || c.Instances > MaxInstances {
		bad("Instances", c.Instances, fmt.Sprintf("must be from 1 to %d, or 0 for 1", MaxInstances))
	}
	if c.Meanwhile != InProcess && c.Instances > 1 {
		bad("Instances", c.Instances, "only InProcess counts, and divides quotas")
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

// filled returns the configuration with what its zero values stand for.
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
