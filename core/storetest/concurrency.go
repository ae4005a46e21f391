package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

const (
	goroutines = 64
	rounds     = 8
)

// concurrency tests that a hit that is left is taken only once, and that several keys are taken
// together or not at all.
func (s *suite) concurrency(t *testing.T) {
	for _, l := range variants() {
		t.Run("one key "+l.Name, func(t *testing.T) {
			l.Quota, l.Window = 100, time.Hour
			if l.Burst > 0 {
				l.Quota, l.Burst = 1, 100
			}
			if l.Precision > 0 {
				l.Precision = time.Minute
			}
			l.Aligned = false
			if l.Lockout != (core.Lockout{}) {
				// No wait ends in the test, however slow it is. Stores get filled lockouts.
				l.Lockout = core.Lockout{First: time.Hour, Factor: 1, Max: time.Hour, Decay: time.Hour}
			}
			c := one(t, s.new(t, nil), l)
			if got := admitted(t, func(int, int) *core.Batch { return c.batch(false, c.item(0, "k", 1)) }); got != 100 {
				t.Errorf("%v: %d of %d admitted, want 100", l, got, goroutines*rounds)
			}
		})
	}
	t.Run("keys together", func(t *testing.T) {
		// Each goroutine takes from one key for all and from one of eight others, with three limits
		// each. A denied take must have charged neither.
		limits := func(n int64) []core.Limit {
			return []core.Limit{core.PerHour(n), {Quota: n + 1, Window: 24 * time.Hour}, {Quota: n + 2, Window: time.Hour, Algorithm: core.SlidingLog}}
		}
		c := bindRules(t, s.new(t, nil),
			core.StoreRule{Name: "all", Limits: limits(60)},
			core.StoreRule{Name: "own", Limits: limits(10)})
		var own [8]atomic.Int64
		got := admitted(t, func(g, _ int) *core.Batch {
			b := c.batch(false, c.item(0, "all", 1), c.item(1, fmt.Sprint(g%8), 1))
			if b.Allowed {
				own[g%8].Add(1)
			}
			return b
		})
		if left := c.remaining("all"); got+left != 60 {
			t.Errorf("%d admitted, and %d of 60 left of the key for all", got, left)
		}
		if got > 60 || !s.givesBack && got != 60 {
			t.Errorf("%d admitted, want 60", got)
		}
		for i := range own {
			left := c.batch(true, c.item(1, fmt.Sprint(i), 0)).Items[0].Results[0].Remaining
			if n := own[i].Load(); n+left != 10 {
				t.Errorf("key %d: %d admitted, and %d of 10 left", i, n, left)
			}
		}
	})
	t.Run("denied takes drain nothing", func(t *testing.T) {
		// One key is over its limit; a denied take must not charge the key that others share.
		c := bindRules(t, s.new(t, nil),
			core.StoreRule{Name: "all", Limits: []core.Limit{core.PerHour(1000)}},
			core.StoreRule{Name: "own", Limits: []core.Limit{core.PerHour(5)}})
		got := admitted(t, func(int, int) *core.Batch {
			return c.batch(false, c.item(0, "all", 1), c.item(1, "one", 1))
		})
		if left := c.remaining("all"); got != 5 || left != 995 {
			t.Errorf("%d admitted, want 5; %d left for all, want 995", got, left)
		}
	})
	t.Run("given back", func(t *testing.T) {
		c := one(t, s.new(t, nil), core.PerHour(goroutines*rounds))
		run(t, func(int, int) { c.refund(c.batch(false, c.item(0, "k", 1))) })
		if got := c.remaining("k"); got != goroutines*rounds {
			t.Errorf("%d left after all was given back, want %d", got, goroutines*rounds)
		}
	})
	t.Run("rebound meanwhile", func(t *testing.T) {
		rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(100)}}}
		store := s.new(t, nil)
		first, err := store.Open(uniqueName(), rules)
		if err != nil {
			t.Fatal(err)
		}
		var current atomic.Value
		current.Store(&counter{t, first, rules, store.Guarantees().Ops})
		var binding sync.Mutex
		got := admitted(t, func(g, round int) *core.Batch {
			c := current.Load().(*counter)
			if g == 0 {
				binding.Lock()
				defer binding.Unlock()
				limits := []core.Limit{core.PerHour(100)}
				if round%2 == 0 {
					limits = append(limits, core.Limit{Quota: 1000, Window: 24 * time.Hour})
				}
				next := []core.StoreRule{{Name: "r", Limits: limits}}
				bound, err := c.bound.Reopen(next)
				if err != nil {
					t.Errorf("Reopen: %v", err)
					return c.peek("k", 0)
				}
				c = &counter{t, bound, next, c.ops}
				current.Store(c)
			}
			return c.batch(false, c.item(0, "k", 1))
		})
		if got != 100 {
			t.Errorf("%d admitted while the rules were bound anew, want 100", got)
		}
	})
}

// admitted runs take in many goroutines, many times each, and returns how many takes were allowed.
func admitted(t *testing.T, take func(goroutine, round int) *core.Batch) int64 {
	t.Helper()
	var n atomic.Int64
	run(t, func(g, round int) {
		if take(g, round).Allowed {
			n.Add(1)
		}
	})
	return n.Load()
}

func run(t *testing.T, f func(goroutine, round int)) {
	t.Helper()
	ctx, start := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			<-ctx.Done() // all at once
			for round := range rounds {
				f(g, round)
			}
		})
	}
	start()
	wg.Wait()
}
