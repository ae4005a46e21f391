package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is a timeout that never passes, for tests of decisions on machines that may be busy.
const patience = 20 * time.Second

var errGone = errors.New("connection refused")

// server is a store that several instances share.
type server struct {
	core.Store
	once     sync.Once
	counters core.Counters
}

func newServer(clock func() time.Time) *server {
	return &server{Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: clock}))}
}

func (s *server) Open(limiter string, rules []core.StoreRule) (c core.Counters, err error) {
	s.once.Do(func() { s.counters, err = s.Store.Open(limiter, rules) })
	return s.counters, err
}

// link is the way to a store. It can be told to fail.
type link struct {
	core.Store
	guarantees *core.Guarantees      // nil: those of the store
	err        atomic.Pointer[error] // nil: the store answers
	late       atomic.Bool           // the store does what it is asked, and its answer is lost
	hang       atomic.Bool           // no answer until the context ends
	slow       atomic.Int64          // nanoseconds before each answer
	panics     atomic.Bool
	cached     atomic.Bool  // a cache denies all, and does not ask the store
	asked      atomic.Int64 // times
}

func newLink(clock func() time.Time) *link { return &link{Store: newServer(clock)} }

func (l *link) fail(err error) {
	if err == nil {
		l.err.Store(nil)
	} else {
		l.err.Store(&err)
	}
}

func (l *link) Guarantees() core.Guarantees {
	if l.guarantees != nil {
		return *l.guarantees
	}
	return l.Store.Guarantees()
}

func (l *link) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := l.Store.Open(limiter, rules)
	return linkCounters{c, l}, err
}

type linkCounters struct {
	core.Counters
	l *link
}

func (c linkCounters) Do(ctx context.Context, b *core.Batch) error {
	l := c.l
	l.asked.Add(1)
	switch err := l.err.Load(); {
	case l.panics.Load():
		panic("fault")
	case l.hang.Load():
		<-ctx.Done()
		return ctx.Err()
	case err != nil:
		return *err
	case l.cached.Load():
		b.Allowed, b.Cached = false, true
		return nil
	default:
		time.Sleep(time.Duration(l.slow.Load()))
	}
	if err := c.Counters.Do(ctx, b); err != nil || !l.late.Load() {
		b.Allowed = b.Allowed && b.Op&(core.OpTake|core.OpPeek|core.OpCharge|core.OpGrant) != 0 // nothing else sets it
		return err
	}
	return errGone
}

func (c linkCounters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	next, err := c.Counters.Reopen(rules)
	return linkCounters{next, c.l}, err
}

func newStore(t testing.TB, inner core.Store, c resilient.Config) *resilient.Store {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := core.Must(resilient.New(inner, c))
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// newLimiter returns a limiter with these limits for each user; no store: in the process.
func newLimiter(t testing.TB, s core.Store, limits ...core.Limit) *core.Limiter {
	t.Helper()
	return core.Must(core.New(core.Config{Name: "l", Store: s, Rules: []core.Rule{{Name: "user", Limits: limits}}, Log: slog.New(slog.DiscardHandler)}))
}

func user(key string) core.Hit { return core.Hit{Rule: "user", Key: key} }

var alice = user("alice")

func take(l *core.Limiter) (core.Decision, error) { return l.Take(context.Background(), 1, alice) }

// allowed returns how many of n requests are allowed, and fails the test if one has an error.
func allowed(t testing.TB, l *core.Limiter, n int, hits ...core.Hit) (got int) {
	t.Helper()
	for range n {
		d, err := l.Take(context.Background(), 1, hits...)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			got++
		}
	}
	return got
}

// degraded takes a hit, and returns whether it was decided without the store.
func degraded(t testing.TB, l *core.Limiter, hits ...core.Hit) bool {
	t.Helper()
	d, err := l.Take(context.Background(), 1, hits...)
	if err != nil {
		t.Fatal(err)
	}
	return d.Degraded
}

func fixed(quota int64, window time.Duration) core.Limit {
	return core.Limit{Quota: quota, Window: window, Algorithm: core.FixedWindow}
}

// eachAlgorithm are limits of a quota an hour.
func eachAlgorithm(quota int64) map[string]core.Limit {
	return map[string]core.Limit{
		"sliding":  core.PerHour(quota),
		"fixed":    fixed(quota, time.Hour),
		"log":      {Quota: quota, Window: time.Hour, Algorithm: core.SlidingLog},
		"token":    {Quota: quota, Window: time.Hour, Algorithm: core.TokenBucket},
		"bucketed": {Quota: quota, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
	}
}

func notTheStores() map[string]error {
	all := map[string]error{}
	for _, err := range []error{core.ErrConfig, core.ErrClosed, core.ErrUnsupported, core.ErrContended, core.ErrDamaged} {
		all[err.Error()] = fmt.Errorf("wrapped: %w", err)
	}
	return all
}
