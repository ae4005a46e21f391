package core

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// logger is called only if there is something to log: the program may set its default logger after
// it has made the limiter.
func (s *snapshot) logger() *slog.Logger {
	log := s.log
	if log == nil {
		log = slog.Default()
	}
	return log.With("limiter", s.name)
}

// failureKind is what has failed. One kind never keeps another out of the log.
type failureKind uint8

const (
	storeFailure failureKind = iota
	ruleFailure
	hookFailure
	callFailure
	failureKinds
)

func (k failureKind) String() string {
	return [failureKinds]string{"the store", "a function of a rule", "a hook", "a call"}[k]
}

// failureEvery is the shortest time between two lines of one kind.
const failureEvery = time.Second

// failureLog bounds what failures write to the log: one line for each kind in each failureEvery.
type failureLog [failureKinds]struct {
	last       atomic.Pointer[time.Time] // when the last line was written; nil: never
	suppressed atomic.Uint64             // failures since then
}

// admit returns whether to log a failure now, and how many have not been logged since the line
// before.
func (f *failureLog) admit(kind failureKind, now time.Time) (suppressed uint64, ok bool) {
	k := &f[kind]
	last := k.last.Load()
	if last != nil && now.Sub(*last) < failureEvery || !k.last.CompareAndSwap(last, &now) {
		k.suppressed.Add(1)
		return 0, false
	}
	return k.suppressed.Swap(0), true
}

// report logs a failure, unless the client caused it by closing the connection. operation is what
// the limiter was doing, and rules the names of the rules that it concerns.
func (f *failureLog) report(ctx context.Context, s *snapshot, kind failureKind, operation, rules string, err error) {
	if canceled(ctx, err) {
		return
	}
	suppressed, ok := f.admit(kind, time.Now())
	if !ok {
		return
	}
	attrs := []slog.Attr{slog.String("operation", operation)}
	if rules != "" {
		attrs = append(attrs, slog.String("rule", rules))
	}
	attrs = append(attrs, slog.Any("error", err))
	if suppressed > 0 {
		attrs = append(attrs, slog.Uint64("suppressed", suppressed))
	}
	s.logger().LogAttrs(ctx, slog.LevelError, "floodgate: "+kind.String()+" failed", attrs...)
}

// reportStore logs the store's error for the session's items.
func (c *session) reportStore(ctx context.Context, operation string, err error) {
	var names []string
	for i := range c.batch.Items {
		if name := c.snap.rules[c.batch.Items[i].Rule].Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	c.failures.report(ctx, c.snap, storeFailure, operation, strings.Join(names, ", "), err)
}
