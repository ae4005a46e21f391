// Package slogobserve logs what a limiter denies, and what fails, with log/slog: a few lines a
// second, however many requests are denied.
//
//	observer, err := slogobserve.New(slogobserve.Config{})
//	limiter, err := core.New(core.Config{Rules: rules, Observer: observer})
//
// An audit log, which must have a line for each denial, is a hook: core.Hooks.OnDisallowed.
package slogobserve

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Config configures [New]. All fields are optional.
type Config struct {
	// Log gets the lines. nil: slog.Default(), as it is when a line is written.
	Log *slog.Logger
	// Every is the shortest time between two lines on one limit and result, from 1 ms to 24 hours.
	// 0 means a second. In that time, there are at most 2 lines for each limit and 4 more.
	Every time.Duration
	// Keys adds the key of the request to its line. A key may hold what a client sent, such as a
	// username.
	Keys bool
}

// New returns an observer that writes lines such as
//
//	level=WARN msg="floodgate: denied" limiter=api rule=ip limit=ip retry_after=12s left_out=318
//
// The results are denied, dry run (over a limit, and core.Config.DryRun has allowed it), bad
// request and failed. Lines of the last two have no rule. A denied request without a rule is one
// that a checker around the limiter has denied. left_out is the number of requests of that limit
// and result since the line before. A request whose client has gone (core.ReasonCanceled) has no
// line. The error wraps [core.ErrConfig] and names the field.
func New(c Config) (core.Observer, error) {
	if c.Every == 0 {
		c.Every = time.Second
	}
	if c.Every < time.Millisecond || c.Every > 24*time.Hour {
		return nil, fmt.Errorf("%w: slogobserve: Every: %v: must be from 1ms to 24h", core.ErrConfig, c.Every)
	}
	return &observer{c, time.Now()}, nil
}

type observer struct {
	Config
	began time.Time
}

// limiter logs the decisions of one configuration of a limiter.
type limiter struct {
	*observer

	name   string
	rules  []core.Rule
	limits [][]samples // by rule and limit
	none   samples     // of decisions that no limit has made
}

// samples has a sampler for each result that is logged.
type samples [core.ReasonFailed + 2]sampler

// Observe implements [core.Observer].
func (o *observer) Observe(name string, rules []core.Rule) core.ObserverFuncs {
	l := &limiter{observer: o, name: name, rules: rules}
	for _, r := range rules {
		l.limits = append(l.limits, make([]samples, len(r.Limits)))
	}
	return core.ObserverFuncs{Decided: l.decided}
}

func (l *limiter) decided(ctx context.Context, d core.Decision, rule, limit int) {
	if d.Allowed && !d.DryRun || d.Reason == core.ReasonCanceled {
		return
	}
	at, decided := &l.none, rule >= 0 && d.Reason <= core.ReasonOverLimit // by the limit
	if decided {
		at = &l.limits[rule][limit]
	}
	result, level := "denied", slog.LevelWarn
	sample := &at[d.Reason]
	switch {
	case d.Reason == core.ReasonFailed:
		result, level = "failed", slog.LevelError
	case d.Reason == core.ReasonBadRequest:
		result = "bad request"
	case d.DryRun:
		result, level = "dry run", slog.LevelInfo
		sample = &at[len(at)-1]
	}
	leftOut, ok := sample.allow(time.Since(l.began), l.Every)
	if !ok {
		return
	}
	log := l.Log
	if log == nil {
		log = slog.Default()
	}
	attrs := append(make([]slog.Attr, 0, 8), slog.String("limiter", l.name))
	if decided {
		attrs = append(attrs, slog.String("rule", l.rules[rule].Name), slog.String("limit", l.rules[rule].Limits[limit].Name))
	}
	switch {
	case d.RetryAfter == core.Never:
		attrs = append(attrs, slog.String("retry_after", "never"))
	case d.RetryAfter > 0:
		attrs = append(attrs, slog.Duration("retry_after", d.RetryAfter))
	}
	if d.Err != nil {
		attrs = append(attrs, slog.Any("error", d.Err))
	}
	if d.Degraded {
		attrs = append(attrs, slog.Bool("degraded", true))
	}
	if l.Keys && decided {
		attrs = append(attrs, slog.String("key", d.Key()))
	}
	if leftOut > 0 {
		attrs = append(attrs, slog.Uint64("left_out", leftOut))
	}
	log.LogAttrs(ctx, level, "floodgate: "+result, attrs...)
}

// sampler allows one line in a time.
type sampler struct {
	next    atomic.Int64 // when the next line may be written, in nanoseconds since the observer was made
	leftOut atomic.Uint64
}

// allow reports whether to write a line now, and how many lines were left out before it.
func (s *sampler) allow(now, every time.Duration) (leftOut uint64, ok bool) {
	next := s.next.Load()
	if int64(now) < next || !s.next.CompareAndSwap(next, int64(now+every)) {
		s.leftOut.Add(1)
		return 0, false
	}
	return s.leftOut.Swap(0), true
}
