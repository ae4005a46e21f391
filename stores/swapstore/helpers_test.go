package swapstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

var errFault = errors.New("the swapper failed")

type clock struct{ now time.Time }

func newClock() *clock                   { return &clock{time.UnixMicro(1_764_000_123_456_789)} }
func (c *clock) Now() time.Time          { return c.now }
func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

func newLimiter(t testing.TB, c core.Config) *core.Limiter {
	t.Helper()
	l, err := core.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// static is a key function that gives every request the same key.
func static(key string) core.KeyFunc {
	return func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, key...), nil }
}

// never is a Counts of hits that are all given back.
func never(core.Request, core.Outcome) bool { return false }

func take(t testing.TB, l *core.Limiter, key string) bool {
	t.Helper()
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Allowed
}

// left returns how many hits of a key remain.
func left(t testing.TB, l *core.Limiter, rule, key string) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), 0, core.Hit{Rule: rule, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}
