package synced_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
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
	l, err := core.New(core.Config{Name: "api", Store: s, Rules: []core.Rule{{Name: "r", Key: core.TakeOnly, Limits: limits}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
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

func left(t testing.TB, l *core.Limiter, key string) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), 0, core.Hit{Rule: "r", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// nodes are several processes on one backend: it takes them for one otherwise.
type node struct{ *shared }

func newNodes(t testing.TB, b *shared, n int, c synced.Config, limits ...core.Limit) (stores []*synced.Store, limiters []*core.Limiter) {
	t.Helper()
	for range n {
		c.Log = quiet
		s := newStore(t, &node{b}, c)
		stores = append(stores, s)
		limiters = append(limiters, newLimiter(t, s, limits...))
	}
	return stores, limiters
}

// MISSION S2-6: 10 + 40 × 0.5 = 30, and 10 + 20 × 0.5 = 20; for each way of
// exchanging.
func TestTheWorkedExamples(t *testing.T) {
	for name, interval := range map[string]time.Duration{"periodic": time.Second, "through": 0, "local": -1} {
		for _, previous := range []int64{40, 20} {
			t.Run(fmt.Sprint(name, previous), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, err := synced.New(newShared(), synced.Config{Interval: interval})
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close(context.Background()) //nolint:errcheck // of no interest any more
					ctx := context.Background()
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
					if got, err := s.Rate(ctx, "another", time.Minute, 0); err != nil || got != 0 {
						t.Errorf("another key: %v, %v", got, err)
					}
				})
			})
		}
	}
}

// CASES 185, MISSION S2-10: what one process counts the others know after two
// intervals.
func TestConvergence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		stores, limiters := newNodes(t, b, 4, synced.Config{Interval: time.Second}, aligned(100, time.Hour))
		for i, l := range limiters {
			for range 10 + i {
				take(t, l, "k")
			}
		}
		time.Sleep(2*time.Second + time.Millisecond)
		for i, l := range limiters {
			if got := left(t, l, "k"); got != 100-10-11-12-13 {
				t.Errorf("node %d has %d left, want 54", i, got)
			}
		}
		for _, s := range stores {
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if got := b.total(); got != 46 {
			t.Errorf("the backend has %d hits, want 46", got)
		}
	})
}

// CASES 177, DESIGN 7: the overshoot of processes that all try as often as they
// can is bounded, and the table of the documentation.
func TestOvershoot(t *testing.T) {
	const nodes, quota, window, every = 4, 1000, 10 * time.Second, time.Millisecond
	for _, row := range []struct {
		interval, latency time.Duration
		loss              int // every so many answers one is lost
	}{
		{10 * time.Millisecond, 0, 0}, {100 * time.Millisecond, 0, 0}, {time.Second, 0, 0}, {100 * time.Millisecond, 20 * time.Millisecond, 3}, {0, 0, 0},
	} {
		t.Run(fmt.Sprint(row.interval, row.latency, row.loss), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Now().Truncate(window).Add(window)))
				b := newShared()
				b.latency = row.latency
				stores, limiters := newNodes(t, b, nodes, synced.Config{Interval: row.interval}, aligned(quota, window))
				start := time.Now()
				const windows = 6
				var admitted [windows]int
				for tick := 0; time.Since(start) < windows*window; tick++ {
					if row.loss > 0 && tick%(row.loss*100) == 0 {
						b.set(func(b *shared) { b.lose = 1 })
					}
					for _, l := range limiters {
						if take(t, l, "k") {
							admitted[time.Since(start)/window]++
						}
					}
					time.Sleep(every)
				}
				late := row.interval + row.latency
				if row.loss > 0 {
					late += row.interval + row.latency // what was lost is heard of one exchange later
				}
				bound := min(nodes*quota, quota+(nodes-1)*int((late+every)/every)+nodes)
				sum := 0
				for i, n := range admitted {
					if n > bound {
						t.Errorf("window %d admits %d, the bound is %d", i, n, bound)
					}
					if i > 0 {
						sum += n
					}
				}
				if admitted[0] < quota {
					t.Errorf("the first window admits %d of %d", admitted[0], quota)
				}
				t.Logf("interval %v: first window %d, later ones %d on average, bound %d", row.interval, admitted[0], sum/(windows-1), bound)
				for _, s := range stores {
					_ = s.Close(context.Background())
				}
			})
		})
	}
}

// CASES 178: the backend is down for five windows; every process still counts,
// and what it has counted is there afterwards, once.
func TestTheBackendIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := newShared()
		s, err := synced.New(b, synced.Config{Interval: 100 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		l := newLimiter(t, s, aligned(10, time.Minute))
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		take(t, l, "k")
		time.Sleep(time.Second)
		b.set(func(b *shared) { b.down = true })
		for range 5 {
			admitted := 0
			for range 40 {
				if take(t, l, "k") {
					admitted++
				}
				time.Sleep(time.Second)
			}
			if admitted > 10 || admitted == 0 {
				t.Errorf("%d admitted in a window", admitted)
			}
			time.Sleep(20 * time.Second)
		}
		for range 3 {
			take(t, l, "k")
		}
		used := 10 - left(t, l, "k")
		b.set(func(b *shared) { b.down = false })
		time.Sleep(time.Second)
		if got := 10 - left(t, l, "k"); got != used {
			t.Errorf("%d used after the backend has come back, were %d", got, used)
		}
		if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "down") {
			t.Errorf("the log:\n%s", text)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if st := s.Stats(); st.Failed == 0 || st.Lost != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// CASES 179: an answer is lost, and the batch pushed again: applied once.
func TestALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		stores, limiters := newNodes(t, b, 2, synced.Config{Interval: 100 * time.Millisecond}, aligned(1000, time.Hour))
		for i := range 200 {
			take(t, limiters[i%2], "k")
			if i%10 == 0 {
				b.set(func(b *shared) { b.lose = 1 })
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if got := b.total(); got != 200 {
			t.Errorf("the backend has %d hits, want 200", got)
		}
		for i, l := range limiters {
			if got := left(t, l, "k"); got != 800 {
				t.Errorf("node %d has %d left, want 800", i, got)
			}
		}
		for _, s := range stores {
			_ = s.Close(context.Background())
		}
	})
}

// CASES 181: what was counted before the window's end is pushed after it, to
// its own window.
func TestAWindowEndsBeforeTheExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		stores, limiters := newNodes(t, b, 2, synced.Config{Interval: 10 * time.Second}, aligned(100, time.Minute), core.Limit{Quota: 100, Window: time.Minute, Algorithm: core.FixedWindow, Aligned: true})
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 59*time.Second)))
		for range 60 {
			take(t, limiters[0], "k")
		}
		time.Sleep(31 * time.Second) // the middle of the next window
		for i, want := range []int64{70, 70} {
			if got := left(t, limiters[i], "k"); i == 0 && got != want {
				t.Errorf("node %d has %d left of the sliding window, want %d", i, got, want)
			}
		}
		take(t, limiters[1], "k")
		time.Sleep(20 * time.Second)
		if got := left(t, limiters[1], "k"); got != 100-1-10 { // a sixth of 60 still counts
			t.Errorf("the other node has %d left, want 89", got)
		}
		for _, s := range stores {
			_ = s.Close(context.Background())
		}
		for c, n := range b.counts {
			if n != 60 && n != 1 {
				t.Errorf("%v has %d hits", c, n)
			}
		}
	})
}

// CASES 182: a process that is killed loses an interval's hits; one that is
// closed loses none; and one that starts anew knows what was pushed.
func TestAProcessEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		s, err := synced.New(b, synced.Config{Interval: time.Second, Windows: []time.Duration{time.Hour}, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
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
		killed := left(t, l, "k")
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := b.total(); got != 35 || killed != 65 {
			t.Errorf("after Close the backend has %d hits, want 35", got)
		}
		again, err := synced.New(b, synced.Config{Interval: time.Second, Windows: []time.Duration{time.Hour}, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the first fetch
		l = newLimiter(t, again, aligned(100, time.Hour))
		take(t, l, "k")
		if got := left(t, l, "k"); got != 64 {
			t.Errorf("a new process has %d left, want 64", got)
		}
		b.set(func(b *shared) { b.down = true })
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := again.Close(ctx); err == nil || again.Stats().Lost != 1 || !strings.Contains(err.Error(), "1 hits could not be pushed") {
			t.Errorf("closing without the backend: %v, %+v", err, again.Stats())
		}
		if err := again.Close(ctx); err != nil {
			t.Errorf("closing again: %v", err)
		}
		if _, err := l.Take(ctx, 1, core.Hit{Rule: "r", Key: "k"}); !errors.Is(err, core.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// CASES 183: many keys between two exchanges go in batches of bounded size.
func TestManyKeysBetweenTwoExchanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: time.Minute, BatchSize: 500, Log: quiet})
		l := newLimiter(t, s, aligned(10, time.Hour))
		const keys = 20_000
		for i := range keys {
			take(t, l, fmt.Sprint(i))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := b.total(); got != keys || b.largest > 501 || b.pushes < 40 {
			t.Errorf("%d hits in %d pushes of at most %d", got, b.pushes, b.largest)
		}
		_ = s.Close(context.Background())
	})
}

// More keys than MaxKeys: the memory is bounded, and what is lost is counted.
func TestMaxKeys(t *testing.T) {
	s := newStore(t, nil, synced.Config{Interval: -1, MaxKeys: 640})
	l := newLimiter(t, s, aligned(10, time.Hour))
	for i := range 10_000 {
		if !take(t, l, fmt.Sprint(i)) {
			t.Fatal("refused")
		}
	}
	if st := s.Stats(); st.Keys > 640 || st.Lost != 10_000-uint64(st.Keys) {
		t.Errorf("%+v", st)
	}
}

// CASES 184: processes that start together do not exchange together.
func TestTheStartIsJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		stores, limiters := newNodes(t, b, 50, synced.Config{Interval: time.Second}, aligned(1000, time.Hour))
		for _, l := range limiters {
			take(t, l, "k")
		}
		last, most := 0, 0
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			b.set(func(b *shared) { most, last = max(most, b.pushes-last), b.pushes })
		}
		if most > 25 {
			t.Errorf("%d of 50 exchanged within a tenth of the interval", most)
		}
		for _, s := range stores {
			_ = s.Close(context.Background())
		}
	})
}

// Runs do not overlap, and one that takes longer than the interval is followed
// by the next at once.
func TestSlowExchanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		b.latency = 350 * time.Millisecond
		s := newStore(t, b, synced.Config{Interval: 100 * time.Millisecond, Log: quiet})
		l := newLimiter(t, s, aligned(1_000_000, time.Hour))
		start := time.Now()
		for time.Since(start) < 7*time.Second {
			take(t, l, "k")
			time.Sleep(10 * time.Millisecond)
		}
		if n := s.Stats().Exchanges; n < 18 || n > 22 {
			t.Errorf("%d exchanges of 350 ms in 7 s", n)
		}
		_ = s.Close(context.Background())
	})
}

// An exchange is forced when a key comes near its limit.
func TestNear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: time.Hour, Near: 80, Log: quiet})
		l := newLimiter(t, s, aligned(10, 24*time.Hour))
		for i := range 10 {
			take(t, l, "k")
			synctest.Wait()
			want := int64(0)
			if i+1 >= 8 {
				want = int64(i + 1)
			}
			if got := b.total(); got != want {
				t.Errorf("after %d hits of 10 the backend has %d, want %d", i+1, got, want)
			}
		}
		_ = s.Close(context.Background())
	})
}

// Refunds and resets reach the others as well; no count falls below zero.
func TestRefundAndReset(t *testing.T) {
	for name, interval := range map[string]time.Duration{"periodic": time.Second, "through": 0, "local": -1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
				if err := l.Refund(ctx, last); err != nil {
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
				if err := l.Refund(ctx, first); err != nil {
					t.Fatal(err)
				}
				admitted := 0
				for range 15 {
					if take(t, l, "k") {
						admitted++
					}
				}
				if admitted != 10 {
					t.Errorf("%d admitted after a refund too many, want 10", admitted)
				}
				_ = s.Close(ctx)
			})
		})
	}
}

// With Interval 0, processes together admit no more than the quota.
func TestThrough(t *testing.T) {
	b := newShared()
	_, limiters := newNodes(t, b, 4, synced.Config{}, aligned(20, time.Hour))
	var admitted atomic.Int64
	done := make(chan bool)
	for _, l := range limiters {
		for range 40 {
			go func() {
				d, err := l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: "k"})
				if err != nil {
					t.Error(err)
				}
				if d.Allowed {
					admitted.Add(1)
				}
				done <- true
			}()
		}
	}
	for range 160 {
		<-done
	}
	if n := admitted.Load(); n > 20 || n < 10 {
		t.Errorf("%d of 160 admitted, want at most 20", n)
	}
	if got := b.total(); got != admitted.Load() {
		t.Errorf("the backend has %d hits, %d were admitted", got, admitted.Load())
	}
	for range 30 {
		take(t, limiters[0], "k")
	}
	if got := b.total(); got != 20 {
		t.Errorf("in the end the backend has %d hits, want 20", got)
	}
	b.set(func(b *shared) { b.down = true })
	if _, err := limiters[0].Take(context.Background(), 1, core.Hit{Rule: "r", Key: "k"}); !errors.Is(err, errDown) {
		t.Errorf("without the backend: %v", err)
	}
}

// CASES 187: all limits of all keys, or none.
func TestAllOrNone(t *testing.T) {
	for _, interval := range []time.Duration{-1, 0} {
		s := newStore(t, newShared(), synced.Config{Interval: interval})
		l, err := core.New(core.Config{Name: "api", Store: s, Rules: []core.Rule{
			{Name: "a", Key: core.TakeOnly, Limits: []core.Limit{aligned(3, time.Hour), aligned(100, 24*time.Hour)}},
			{Name: "b", Key: core.TakeOnly, Limits: []core.Limit{aligned(5, time.Hour)}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, a, b := context.Background(), core.Hit{Rule: "a", Key: "k"}, core.Hit{Rule: "b", Key: "k"}
		for range 10 {
			_, _ = l.Take(ctx, 1, a, b)
		}
		if d, _ := l.Peek(ctx, 0, b); d.Remaining != 2 {
			t.Errorf("interval %v: %d left of the other key, want 2", interval, d.Remaining)
		}
		if d, _ := l.Take(ctx, 4, b); d.Allowed || d.RetryAfter <= 0 {
			t.Errorf("interval %v: %+v", interval, d.LimitStatus)
		}
		if d, _ := l.Take(ctx, 6, b); d.Allowed || d.RetryAfter != core.Never {
			t.Errorf("interval %v: more than the quota: %+v", interval, d.LimitStatus)
		}
	}
}

func TestWrongConfigurationIsNamed(t *testing.T) {
	_, err := synced.New(nil, synced.Config{Namespace: "a b", Interval: time.Microsecond, Windows: []time.Duration{1}, Near: 101, Timeout: 1, BatchSize: -1, MaxKeys: -2})
	for _, want := range []string{"backend: <nil>", `Namespace: "a b"`, "Interval: 1µs", "Windows[0]: 1ns", "Near: 101", "Timeout: 1ns", "BatchSize: -1", "MaxKeys: -2"} {
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	b := newShared()
	first := newStore(t, b, synced.Config{Interval: -1})
	if _, err := synced.New(b, synced.Config{Interval: -1}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `"default": is in use`) {
		t.Errorf("a namespace twice: %v", err)
	}
	newStore(t, b, synced.Config{Interval: -1, Namespace: "another"})
	_ = first.Close(context.Background())
	newStore(t, b, synced.Config{Interval: -1})

	s := newStore(t, nil, synced.Config{Interval: -1})
	for _, l := range []core.Limit{core.PerMinute(1), {Quota: 1, Window: time.Minute, Algorithm: core.TokenBucket}} {
		_, err := core.New(core.Config{Name: "x", Store: s, Rules: []core.Rule{{Name: "r", Key: core.TakeOnly, Limits: []core.Limit{l}}}})
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `rule "r", limit "r"`) || !strings.Contains(err.Error(), "Aligned") {
			t.Errorf("%v: %v", l, err)
		}
	}
	if _, err := s.Increment(context.Background(), "k", time.Nanosecond, 1); !errors.Is(err, core.ErrConfig) {
		t.Errorf("a window of 1 ns: %v", err)
	}
	if _, err := s.Increment(context.Background(), "k", time.Second, -1); !errors.Is(err, core.ErrNegativeCost) {
		t.Errorf("a negative value: %v", err)
	}
	if !s.EventuallyConsistent() || newStore(t, newShared(), synced.Config{}).EventuallyConsistent() {
		t.Error("what is eventually consistent is not said")
	}
}

// A decision beside exchanges of 100,000 keys, and in process alone.
func BenchmarkTake(b *testing.B) {
	run := func(name string, s core.Store, l core.Limit) {
		b.Run(name, func(b *testing.B) {
			limiter := newLimiter(b, s, l)
			keys := make([]string, 100_000)
			for i := range keys {
				keys[i] = fmt.Sprint("key", i)
				take(b, limiter, keys[i])
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + 7919) % len(keys)
				if _, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "r", Key: keys[i]}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	l := aligned(core.MaxQuota, time.Hour)
	run("in process", core.Must(core.NewMemory(core.MemoryConfig{})), l)
	run("synced, local", newStore(b, nil, synced.Config{Interval: -1}), l)
	run("synced, exchanging every second", newStore(b, newShared(), synced.Config{Interval: time.Second, Log: quiet}), l)
}
