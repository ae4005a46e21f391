package synced_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

func newLimiter(t testing.TB, s core.Store, limits ...core.Limit) *core.Limiter {
	t.Helper()
	return newLimiterNamed(t, s, "api", limits...)
}

func newLimiterNamed(t testing.TB, s core.Store, name string, limits ...core.Limit) *core.Limiter {
	t.Helper()
	return core.Must(core.New(core.Config{Name: name, Store: s, Rules: []core.Rule{{Name: "r", Limits: limits}}}))
}

func aligned(quota int64, window time.Duration) core.Limit {
	return core.Limit{Quota: quota, Window: window, Aligned: true}
}

func take(t testing.TB, l *core.Limiter, key string) bool {
	t.Helper()
	d, err := l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Allowed
}

// left peeks for one hit, which is not charged.
func left(t testing.TB, l *core.Limiter, key string) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), 1, core.Hit{Rule: "r", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// node makes one backend look like several: a process uses a namespace once for each backend.
type node struct{ *shared }

func newNodes(t testing.TB, b *shared, n int, c synced.Config, limits ...core.Limit) (stores []*synced.Store, limiters []*core.Limiter) {
	t.Helper()
	for range n {
		c.Log = cmp.Or(c.Log, quiet)
		s := newStore(t, &node{b}, c)
		stores = append(stores, s)
		limiters = append(limiters, newLimiter(t, s, limits...))
	}
	return stores, limiters
}

// 10 + 40 × 0.5 = 30, and 10 + 20 × 0.5 = 20; for each way of exchanging.
func TestTheWorkedExamples(t *testing.T) {
	for _, previous := range []int64{40, 20} {
		eachWay(t, func(t *testing.T, interval time.Duration) {
			ctx, s := t.Context(), newStore(t, newShared(), synced.Config{Interval: interval, Windows: []time.Duration{time.Minute}})
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 5*time.Second)))
			if _, err := s.Increment(ctx, "k", time.Minute, previous); err != nil {
				t.Fatal(err)
			}
			time.Sleep(85 * time.Second) // half a minute into the next window
			want := float64(previous)/2 + 10
			if got, err := s.Rate(ctx, "k", time.Minute, 10); err != nil || got != want {
				t.Errorf("looking ahead: %v, %v, want %v", got, err, want)
			}
			if got, err := s.Increment(ctx, "k", time.Minute, 10); err != nil || got != want {
				t.Errorf("the rate is %v, %v, want %v", got, err, want)
			}
			if got, err := s.Increment(ctx, "k", time.Minute, 0); err != nil || got != want {
				t.Errorf("by 0: %v, %v, want %v", got, err, want)
			}
			if got, err := s.Rate(ctx, "k", time.Minute, -20); err != nil || got != float64(previous)/2 {
				t.Errorf("with fewer than no hits in the window: %v, %v, want %v", got, err, float64(previous)/2)
			}
			if got, err := s.Increment(ctx, "another", time.Minute, 1); err != nil || got != 1 {
				t.Errorf("another key: %v, %v", got, err)
			}
		})
	}
}

// Close pushes what is left, and nothing is counted after it. If the backend does not answer, the
// error says how many hits are lost.
func TestAProcessEnds(t *testing.T) {
	for _, down := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newShared()
			s := newStore(t, b, synced.Config{Interval: time.Second, Log: quiet})
			l := newLimiter(t, s, aligned(100, time.Hour))
			for range 30 {
				take(t, l, "k")
			}
			time.Sleep(1100 * time.Millisecond)
			for range 5 {
				take(t, l, "k")
			}
			if got := b.total(); got != 30 {
				t.Errorf("the backend has %d hits, want the 30 of before", got)
			}
			b.set(func(b *shared) { b.down = down })
			began := time.Now()
			err := s.Close(t.Context())
			if d := time.Since(began); (d > 0) != down {
				t.Errorf("down %t: it took %v", down, d)
			}
			if lost := err != nil && strings.Contains(err.Error(), "5 hits could not be pushed"); lost != down || s.Stats().Lost != map[bool]uint64{true: 5}[down] || !down && b.total() != 35 {
				t.Errorf("down %t: %v, %+v, and the backend has %d hits", down, err, s.Stats(), b.total())
			}
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("closing again: %v", err)
			}
			_, err = l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"})
			_, opened := s.Open("another", nil)
			if !errors.Is(err, core.ErrClosed) || !errors.Is(opened, core.ErrClosed) {
				t.Errorf("after Close: %v; Open: %v", err, opened)
			}
		})
	}
}

// Stats counts batches and fetches that were answered, and those that failed.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		through := newStore(t, b, synced.Config{Namespace: "through", Windows: []time.Duration{day}})
		l := newLimiter(t, through, aligned(1, day))
		for i, do := range []func(){ // nothing is fetched, a decision is an exchange, and a denial is two
			func() {}, func() { left(t, l, "k") }, func() { take(t, l, "k") }, func() {}, func() { take(t, l, "k") },
		} {
			if do(); i != 3 && through.Stats() != (synced.Stats{Exchanges: uint64(i)}) {
				t.Errorf("with Interval 0, step %d: %+v", i, through.Stats())
			}
		}
		s := newStore(t, b, synced.Config{Interval: time.Hour, Log: quiet})
		l = newLimiter(t, s, aligned(10, day))
		for i := range 30 { // 2 differences each: 1 batch
			take(t, l, fmt.Sprint(i))
		}
		for i, want := range []synced.Stats{
			{Keys: 30, Exchanges: 1 + 1}, // and a fetch before that
			{Keys: 30, Exchanges: 2 + 1},
			{Keys: 30, Exchanges: 3, Failed: 1},
		} {
			b.set(func(b *shared) { b.down = i == 2 })
			if err := s.Sync(t.Context()); (err == nil) != (i < 2) {
				t.Fatal(err)
			}
			if got := s.Stats(); got != want {
				t.Errorf("after %d exchanges: %+v, want %+v", i+1, got, want)
			}
			take(t, l, "1")
		}
		b.set(func(b *shared) { b.down = false })
	})
}

// The counters of a window are fetched once, however many limiters have it. Each limiter counts for
// itself.
func TestAWindowIsFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, newShared(), synced.Config{Interval: time.Hour, Windows: []time.Duration{day, time.Hour}})
		for i, window := range []time.Duration{day, day, time.Hour, time.Minute} {
			l := newLimiterNamed(t, s, fmt.Sprint("l", i), aligned(10, window))
			if take(t, l, "k"); left(t, l, "k") != 9 {
				t.Errorf("limiter %d counts the hits of another", i)
			}
			if got, want := s.Stats().Exchanges, map[bool]uint64{false: 1, true: 2}[window == time.Minute]; got != want {
				t.Errorf("after limiter %d: %d fetches, want %d", i, got, want)
			}
		}
	})
}

// Refunds and resets reach the backend; no count falls below zero.
func TestRefundAndReset(t *testing.T) {
	eachWay(t, func(t *testing.T, interval time.Duration) {
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: interval, Log: quiet})
		l := newLimiter(t, s, aligned(10, time.Hour), core.Limit{Quota: 20, Window: time.Hour, Algorithm: core.FixedWindow, Aligned: true})
		ctx, hit := context.Background(), core.Hit{Rule: "r", Key: "k"}
		first, _ := l.Take(ctx, 1, hit)
		var last core.Decision
		for range 3 {
			last, _ = l.Take(ctx, 1, hit)
		}
		time.Sleep(2 * time.Second)
		if err := l.Adjust(ctx, last, 0); err != nil {
			t.Fatal(err)
		}
		if got := left(t, l, "k"); got != 7 {
			t.Errorf("%d left after the refund, want 7", got)
		}
		time.Sleep(2 * time.Second)
		if interval >= 0 && b.total() != 6 { // two limits
			t.Errorf("the backend has %d hits, want 6", b.total())
		}
		if err := l.Reset(ctx, hit); err != nil {
			t.Fatal(err)
		}
		if got := left(t, l, "k"); got != 10 {
			t.Errorf("%d left after the reset, want 10", got)
		}
		time.Sleep(2 * time.Second)
		if interval >= 0 && b.total() != 0 {
			t.Errorf("the backend has %d hits after the reset", b.total())
		}
		// What was forgotten cannot be given back as well.
		if err := l.Adjust(ctx, first, 0); err != nil {
			t.Fatal(err)
		}
		allowed := 0
		for range 15 {
			if take(t, l, "k") {
				allowed++
			}
		}
		if allowed != 10 {
			t.Errorf("%d allowed after a refund too many, want 10", allowed)
		}
	})
}

// All limits of all keys are charged, or none.
func TestAllOrNone(t *testing.T) {
	for _, interval := range []time.Duration{-1, 0} {
		s := newStore(t, newShared(), synced.Config{Interval: interval, Windows: []time.Duration{time.Minute}})
		l := core.Must(core.New(core.Config{Name: "api", Store: s, Rules: []core.Rule{
			{Name: "a", Limits: []core.Limit{aligned(3, time.Hour), aligned(100, 24*time.Hour)}},
			{Name: "b", Limits: []core.Limit{aligned(5, time.Hour)}},
		}}))
		ctx, a, b := context.Background(), core.Hit{Rule: "a", Key: "k"}, core.Hit{Rule: "b", Key: "k"}
		for i := range 10 {
			d, _ := l.Take(ctx, 1, a, b)
			left := int64(0)
			for limit := range d.Limits() {
				left = 100*left + limit.Remaining
			}
			if i >= 3 && left != 97_02 {
				t.Errorf("interval %v: a take that is denied: %d are left, want 0, 97 and 2", interval, left)
			}
		}
		if _, err := l.Grant(ctx, 1, b); !errors.Is(err, core.ErrUnsupported) { // two processes would give back the same hits
			t.Errorf("interval %v: %v", interval, err)
		}
		if d, _ := l.Take(ctx, 4, b); d.Allowed || d.RetryAfter <= 0 {
			t.Errorf("interval %v: %v", interval, d)
		}
		if d, _ := l.Take(ctx, 6, b); d.Allowed || d.RetryAfter != core.Never {
			t.Errorf("interval %v: more than the quota: %v", interval, d)
		}
	}
}

// A limiter that is changed keeps the counts of the limits that stay, each its
// own, and a new limit begins with none.
func TestReconfigureKeepsTheCountsOfEachLimit(t *testing.T) {
	s := newStore(t, nil, synced.Config{Interval: -1})
	hit := core.Hit{Rule: "r", Key: "k"}
	config := func(limits ...core.Limit) core.Config {
		return core.Config{Name: "api", Store: s, Rules: []core.Rule{{Name: "r", Limits: limits}}}
	}
	windows := []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour}
	l := core.Must(core.New(config(aligned(100, windows[0]))))
	// Hits are added with more and more limits, so that each has another count.
	for n := 1; n <= len(windows); n++ {
		var limits []core.Limit
		for _, w := range windows[:n] {
			limits = append(limits, aligned(100, w))
		}
		if err := l.Reconfigure(config(limits...)); err != nil {
			t.Fatal(err)
		}
		if d, err := l.Take(t.Context(), 10, hit); err != nil || !d.Allowed {
			t.Fatalf("%v, %v", d, err)
		}
	}
	for round := range 3 {
		for i, w := range windows {
			if err := l.Reconfigure(config(aligned(100, w))); err != nil {
				t.Fatal(err)
			}
			if got, want := left(t, l, "k"), int64(100-10*(len(windows)-i)); got != want {
				t.Errorf("round %d: %d left of the limit of %v, want %d", round, got, w, want)
			}
		}
	}
}

func TestWrongConfigurationIsNamed(t *testing.T) {
	_, err := synced.New(nil, synced.Config{
		Namespace: "a b", Interval: time.Microsecond, Windows: []time.Duration{1}, Timeout: 1, MaxKeys: -1,
	})
	for _, want := range []string{
		"backend: <nil>: is needed, unless Interval is negative",
		`Namespace: "a b": must be 1 to 64 of the characters A-Z a-z 0-9 _ . -`,
		"Interval: 1µs: must be 1ms or more, 0 or negative",
		"Windows[0]: 1ns: must be whole microseconds from 1ms to 366 days",
		"Timeout: 1ns: must be 1ms or more, or 0 for 1s", "MaxKeys: -1: must be 1 or more, or 0 for 1000000",
	} {
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	for _, none := range []synced.Backend{nil, (*shared)(nil)} {
		if _, err := synced.New(none, synced.Config{}); !errors.Is(err, core.ErrConfig) {
			t.Errorf("without a backend: %v", err)
		}
	}
	if _, err := synced.New(struct {
		*node
		no []int
	}{}, synced.Config{Interval: -1}); err == nil || !strings.Contains(err.Error(), "backend: struct") || !strings.Contains(err.Error(), ": cannot be compared: use a pointer") {
		t.Errorf("a backend that cannot be compared: %v", err)
	}
	newStore(t, newShared(), synced.Config{Interval: synced.MinInterval, Timeout: time.Millisecond, MaxKeys: 1, Log: quiet})
	b := newShared()
	first := newStore(t, b, synced.Config{Interval: -1})
	if _, err := synced.New(b, synced.Config{Interval: -1}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `"default": is in use`) {
		t.Errorf("a namespace twice: %v", err)
	}
	newStore(t, b, synced.Config{Interval: -1, Namespace: strings.Repeat("n", 64)})
	if _, err := synced.New(b, synced.Config{Interval: -1, Namespace: strings.Repeat("n", 65)}); err == nil {
		t.Error("a namespace of 65 characters")
	}
	_ = first.Close(context.Background())
	newStore(t, b, synced.Config{Interval: -1})

	s := newStore(t, nil, synced.Config{Interval: -1, Windows: []time.Duration{time.Minute}})
	for _, l := range []core.Limit{core.PerMinute(1), core.PerMonth(1), {Quota: 1, Window: time.Minute, Algorithm: core.TokenBucket}} {
		_, err := core.New(core.Config{Name: "x", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{l}}}})
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `rule "r", limit "r"`) || !strings.Contains(err.Error(), "set Aligned, and leave Zone out") {
			t.Errorf("%v: %v", l, err)
		}
	}
	for want, value := range map[string]int64{"window: 1s": 1, "value: -1": -1, "value: 2147483648": core.MaxQuota + 1} {
		if _, err := s.Increment(context.Background(), "k", time.Second, value); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if got, err := s.Increment(t.Context(), "k", time.Minute, core.MaxQuota); err != nil || got != core.MaxQuota {
		t.Errorf("the largest Increment: %v, %v", got, err)
	}
	_, once := s.Open("twice", nil)
	if _, err := s.Open("twice", nil); once != nil || !errors.Is(err, core.ErrConfig) || !strings.HasSuffix(err.Error(), `: Name: "twice": this store already counts for a limiter of that name`) {
		t.Errorf("a limiter's name once and twice: %v, %v", once, err)
	}
	const ops = core.OpTake | core.OpPeek | core.OpCharge | core.OpRefund | core.OpReset
	for want, c := range map[core.Guarantees]synced.Config{
		{Ops: ops, OneStep: true, KeepsDeadline: true, FailsFast: true, OnFailure: core.FailLocal}:               {Interval: -1, Namespace: "private"},
		{Ops: ops, OneStep: true, KeepsDeadline: true, FailsFast: true, OnFailure: core.FailLocal, Shared: true}: {Interval: time.Hour},
		{Ops: ops, Exact: true, OnFailure: core.FailClosed, Shared: true}:                                        {},
	} {
		if got := newStore(t, newShared(), c).Guarantees(); got != want {
			t.Errorf("Interval %v: %+v, want %+v", c.Interval, got, want)
		}
	}
}
