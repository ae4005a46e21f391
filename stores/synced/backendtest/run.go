// Package backendtest tests backends of package synced, in this module and outside it.
package backendtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// Run tests a backend with real stores on it. Each call of open returns an empty backend, as a
// distinct value; backends may share their counters.
func Run(t *testing.T, open func(t *testing.T) synced.Backend) {
	const minute = time.Minute
	now := time.Now()
	start := now.Truncate(minute)
	name := func() string { return fmt.Sprintf("t%d", time.Now().UnixNano()) }
	batch := func(namespace, node string, sequence uint64, diffs ...synced.Diff) synced.Batch {
		return synced.Batch{Namespace: namespace, Node: node, Sequence: sequence, At: now, Diffs: diffs}
	}
	diff := func(key string, n int64) synced.Diff {
		return synced.Diff{Key: key, Window: minute, Start: start, Diff: n}
	}
	push := func(t *testing.T, b synced.Backend, batch synced.Batch, want ...int64) {
		t.Helper()
		if got, err := b.PushDiffs(t.Context(), batch); err != nil || !slices.Equal(got, want) {
			t.Fatalf("totals %v, %v, want %v", got, err, want)
		}
	}
	counters := func(t *testing.T, b synced.Backend, namespace string, at time.Time, windows ...time.Duration) map[string]int64 {
		t.Helper()
		all := map[string]int64{}
		for c, err := range b.Counters(t.Context(), namespace, windows, at) {
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprint(c.Key, " ", c.Window, " ", c.Start.Sub(start))] = c.Count
		}
		return all
	}

	t.Run("differences add up, of all nodes", func(t *testing.T) {
		b, ns := open(t), name()
		push(t, b, batch(ns, "n1", 1, diff("a", 3), diff("b", 5)), 3, 5)
		push(t, b, batch(ns, "n2", 1, diff("b", -2), diff("a", 1)), 3, 4)
		push(t, b, batch(ns, "n1", 2, diff("a", 0), diff("none", 0)), 4, 0)
		push(t, b, batch(ns, "n1", 3), []int64{}...)
		if got, err := b.Window(t.Context(), ns, "a", start, minute); err != nil || got != 4 {
			t.Errorf("Window: %d, %v", got, err)
		}
		if got, err := b.Window(t.Context(), ns, "none", start, minute); err != nil || got != 0 {
			t.Errorf("Window of none: %d, %v", got, err)
		}
		if got := counters(t, b, ns, now, minute); fmt.Sprint(got) != "map[a 1m0s 0s:4 b 1m0s 0s:3]" {
			t.Errorf("Counters: %v", got)
		}
	})

	t.Run("no counter falls below 0", func(t *testing.T) {
		b, ns := open(t), name()
		push(t, b, batch(ns, "n1", 1, diff("a", 3), diff("b", -4), diff("c", synced.Forget)), 3, 0, 0)
		for key, n := range counters(t, b, ns, now, minute) {
			if n < 0 {
				t.Errorf("Counters: %s has %d hits", key, n)
			}
		}
		push(t, b, batch(ns, "n2", 1, diff("a", -5), diff("b", -4), diff("c", -1)), 0, 0, 0)
		push(t, b, batch(ns, "n1", 2, diff("b", 0), diff("c", 0)), 0, 0)
		for key, n := range counters(t, b, ns, now, minute) {
			if n != 0 {
				t.Errorf("Counters: %s has %d hits", key, n)
			}
		}
		if got, err := b.Window(t.Context(), ns, "c", start, minute); err != nil || got != 0 {
			t.Errorf("Window: %d, %v", got, err)
		}
		push(t, b, batch(ns, "n1", 3, diff("a", 2), diff("b", 2), diff("c", 2)), 2, 2, 2)
		push(t, b, batch(ns, "n1", 4, diff("a", synced.Forget), diff("b", -1), diff("c", 1)), 0, 1, 3)
	})

	t.Run("a batch that is pushed again is applied once", func(t *testing.T) {
		b, ns := open(t), name()
		for range 3 {
			push(t, b, batch(ns, "n1", 1, diff("a", 3)), 3)
		}
		push(t, b, batch(ns, "n1", 5, diff("a", 1)), 4)
		push(t, b, batch(ns, "n1", 4, diff("a", 1)), 4)
		push(t, b, batch(ns, "n2", 4, diff("a", 1)), 5)
		push(t, b, batch(ns, "n1", 0, diff("a", 1)), 6)
		push(t, b, batch(ns, "n1", 0, diff("a", 1)), 7)
		push(t, b, batch(ns, "n1", 5, diff("a", 1)), 7)
	})

	t.Run("namespaces, windows and starts are apart", func(t *testing.T) {
		b, ns, other := open(t), name(), name()+"-other"
		previous, hour, old := diff("a", 2), diff("a", 4), diff("a", 8)
		previous.Start = start.Add(-minute)
		hour.Window, hour.Start = time.Hour, now.Truncate(time.Hour)
		old.Start = start.Add(-2 * minute)
		push(t, b, batch(ns, "n", 1, diff("a", 1), previous, hour, old), 1, 2, 4, 8)
		push(t, b, batch(other, "n", 1, diff("a", 16)), 16)
		if got := counters(t, b, ns, now, minute); fmt.Sprint(got) != "map[a 1m0s -1m0s:2 a 1m0s 0s:1]" {
			t.Errorf("Counters: %v", got)
		}
		for at, want := range map[time.Time]string{
			start:                                  "map[a 1m0s -1m0s:2 a 1m0s 0s:1]",
			start.Add(minute - time.Microsecond):   "map[a 1m0s -1m0s:2 a 1m0s 0s:1]",
			start.Add(minute):                      "map[a 1m0s 0s:1]",
			start.Add(-time.Microsecond):           "map[a 1m0s -1m0s:2 a 1m0s -2m0s:8]",
			start.Add(2*minute - time.Microsecond): "map[a 1m0s 0s:1]",
			start.Add(2 * minute):                  "map[]",
		} {
			if got := counters(t, b, ns, at, minute); fmt.Sprint(got) != want {
				t.Errorf("Counters at %v after the window's start: %v, want %s", at.Sub(start), got, want)
			}
		}
		if got := counters(t, b, ns, now, time.Second); len(got) != 0 {
			t.Errorf("Counters of another length: %v", got)
		}
		if got := counters(t, b, other, now, minute, time.Hour); len(got) != 1 {
			t.Errorf("Counters of the other namespace: %v", got)
		}
		for range b.Counters(t.Context(), ns, []time.Duration{minute}, now) {
			break // an iterator may be left
		}
	})

	t.Run("a large batch", func(t *testing.T) {
		b, ns := open(t), name()
		var diffs []synced.Diff
		var want []int64
		for i := range int64(2000) {
			diffs = append(diffs, diff(fmt.Sprint("k", i), i))
			want = append(want, i)
		}
		push(t, b, batch(ns, "n", 1, diffs...), want...)
		if got := counters(t, b, ns, now, minute); len(got) != 1999 { // 0 makes no counter
			t.Errorf("%d counters", len(got))
		}
	})

	t.Run("many nodes at once", func(t *testing.T) {
		b, ns := open(t), name()
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				for i := range 25 {
					diffs := []synced.Diff{diff("a", 1), diff("b", 1), diff("c", 1)}
					if n%2 == 0 {
						slices.Reverse(diffs)
					}
					if _, err := b.PushDiffs(context.Background(), batch(ns, fmt.Sprint("n", n), uint64(i+1), diffs...)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		push(t, b, batch(ns, "n", 1, diff("a", 0), diff("b", 0), diff("c", 0)), 200, 200, 200)
	})

	t.Run("four stores share a limit", func(t *testing.T) {
		ns := name()
		var limiters []*core.Limiter
		var stores []*synced.Store
		for range 4 {
			s, err := synced.New(open(t), synced.Config{Namespace: ns, Interval: 20 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			stores = append(stores, s)
			limiters = append(limiters, core.Must(core.New(core.Config{Name: "api", Store: s, Rules: []core.Rule{
				{Name: "r", Limits: []core.Limit{{Quota: 100, Window: 24 * time.Hour, Aligned: true}}},
			}})))
		}
		hit, allowed := core.Hit{Rule: "r", Key: "k"}, int64(0)
		for i := range 40 {
			if d, err := limiters[i%4].Take(t.Context(), 1, hit); err != nil {
				t.Fatal(err)
			} else if d.Allowed {
				allowed++
			}
		}
		for _, l := range limiters {
			for end := time.Now().Add(20 * time.Second); ; <-time.After(5 * time.Millisecond) {
				d, err := l.Peek(t.Context(), 0, hit)
				if err != nil {
					t.Fatal(err)
				}
				if d.Remaining == 60 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%d left after 40 hits of 100", d.Remaining)
				}
			}
		}
		for _, s := range stores {
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if allowed != 40 {
			t.Errorf("%d allowed", allowed)
		}
	})

	t.Run("four stores that all try at once", func(t *testing.T) {
		const quota, tries = 50, 200
		ns := name()
		var allowed atomic.Int64
		var wg sync.WaitGroup
		var stores []*synced.Store
		for range 4 {
			s, err := synced.New(open(t), synced.Config{Namespace: ns, Interval: 2 * time.Millisecond, Timeout: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			stores = append(stores, s)
			l := core.Must(core.New(core.Config{Name: "api", Store: s, Rules: []core.Rule{
				{Name: "r", Limits: []core.Limit{{Quota: quota, Window: 24 * time.Hour, Aligned: true}}},
			}}))
			wg.Go(func() {
				own := 0
				for range tries {
					d, err := l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: "k"})
					if err != nil {
						t.Error(err)
						return
					}
					if d.Allowed {
						own++
						allowed.Add(1)
					}
					<-time.After(time.Millisecond)
				}
				if own > quota {
					t.Errorf("one store allowed %d of %d", own, quota)
				}
			})
		}
		wg.Wait()
		for _, s := range stores {
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if n := allowed.Load(); n < quota || n > 4*quota {
			t.Errorf("%d allowed by four stores at a limit of %d", n, quota)
		}
		total := int64(0)
		for c, err := range open(t).Counters(t.Context(), ns, []time.Duration{24 * time.Hour}, time.Now()) {
			if err != nil {
				t.Fatal(err)
			}
			total += c.Count
		}
		if total != allowed.Load() {
			t.Errorf("the backend has %d hits, %d were allowed", total, allowed.Load())
		}
	})

	t.Run("straight through", func(t *testing.T) {
		s, err := synced.New(open(t), synced.Config{Namespace: name(), Timeout: 20 * time.Second, Windows: []time.Duration{24 * time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.Background()) //nolint:errcheck // nothing is left to push
		l := core.Must(core.New(core.Config{Name: "api", Store: s, Rules: []core.Rule{
			{Name: "r", Limits: []core.Limit{{Quota: 5, Window: 24 * time.Hour, Aligned: true}}},
		}}))
		for i := range 9 {
			if d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); err != nil || d.Allowed != (i < 5) {
				t.Errorf("take %d: %v, %v", i, d, err)
			}
		}
		if got, err := s.Increment(t.Context(), "k", 24*time.Hour, 7); err != nil || got != 7 {
			t.Errorf("Increment: %v, %v", got, err)
		}
		if got, err := s.Rate(t.Context(), "k", 24*time.Hour, 3); err != nil || got != 10 {
			t.Errorf("Rate: %v, %v", got, err)
		}
	})

	t.Run("a context that has ended", func(t *testing.T) {
		b := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.PushDiffs(ctx, batch(name(), "n", 1, diff("a", 1))); err == nil {
			t.Error("PushDiffs: no error")
		}
		if _, err := b.Window(ctx, "n", "a", start, minute); err == nil {
			t.Error("Window: no error")
		}
		failed := false
		for _, err := range b.Counters(ctx, "n", []time.Duration{minute}, now) {
			failed = err != nil
		}
		if !failed {
			t.Error("Counters: no error")
		}
	})
}
