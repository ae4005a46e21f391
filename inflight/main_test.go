package inflight_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/inflight"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// byHeader is the key of a request: its header Key.
func byHeader(dst []byte, r core.Request) ([]byte, error) {
	for _, v := range r.HeaderValues("Key") {
		dst = append(dst, v...)
	}
	return dst, nil
}

func request(ctx context.Context, key string) core.Request {
	return floodgatetest.NewRequest("GET", "/", floodgatetest.Context(ctx), floodgatetest.Header("Key", key))
}

// newLimiter returns a limiter that logs nothing and is closed when the test ends.
func newLimiter(t testing.TB, c inflight.Config) *inflight.Limiter {
	t.Helper()
	if c.Name == "" {
		c.Name = "slots"
	}
	if c.Key == nil {
		c.Key = byHeader
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	l := core.Must(inflight.New(c))
	t.Cleanup(func() { _ = l.Close() })
	return l
}

var errGone = errors.New("the store is gone")

// memory is an inflight.Store in the process, with a plain list of the slots of newLimiter. Its
// errors are decided by fails, before or after it has done what it was asked.
type memory struct {
	mu       sync.Mutex
	ends     map[inflight.Slot]time.Time
	fails    func(operation string) (before, after bool)
	renewals int
}

func newMemory() *memory {
	return &memory{ends: map[inflight.Slot]time.Time{}, fails: func(string) (bool, bool) { return false, false }}
}

// fail makes f decide on errors from now on.
func (m *memory) fail(f func(operation string) (before, after bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = f
}

func (m *memory) do(ctx context.Context, limiter, operation string, f func(now time.Time)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, after := m.fails(operation)
	if before || ctx.Err() != nil || limiter != "slots" {
		return errors.Join(errGone, ctx.Err())
	}
	now := time.Now()
	for s, end := range m.ends {
		if !now.Before(end) {
			delete(m.ends, s)
		}
	}
	f(now)
	if after {
		return errGone
	}
	return nil
}

func (m *memory) AcquireSlot(ctx context.Context, limiter string, s inflight.Slot, most int64, lease time.Duration) (held int64, ok bool, err error) {
	err = m.do(ctx, limiter, "acquire", func(now time.Time) {
		for other := range m.ends {
			if other.Key == s.Key {
				held++
			}
		}
		if ok = held < most; ok {
			m.ends[s] = now.Add(lease)
			held++
		}
	})
	return held, ok && err == nil, err
}

func (m *memory) RenewSlots(ctx context.Context, limiter string, slots []inflight.Slot, lease time.Duration) error {
	return m.do(ctx, limiter, "renew", func(now time.Time) {
		m.renewals++
		for _, s := range slots {
			m.ends[s] = now.Add(lease)
		}
	})
}

func (m *memory) ReleaseSlots(ctx context.Context, limiter string, slots []inflight.Slot) error {
	return m.do(ctx, limiter, "release", func(time.Time) {
		for _, s := range slots {
			delete(m.ends, s)
		}
	})
}

// held returns how many slots of all keys the store counts.
func (m *memory) held() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, end := range m.ends {
		if time.Now().Before(end) {
			n++
		}
	}
	return n
}

func ExampleNew() {
	exports, err := inflight.New(inflight.Config{Name: "exports", Max: 2})
	if err != nil {
		panic(err)
	}
	for range 3 {
		_, ok, err := exports.Acquire(context.Background(), "ann")
		fmt.Println(ok, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}
