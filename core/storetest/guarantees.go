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

// Instances are stores like those of several processes.
type Instances struct {
	// Stores has two or more empty stores. If they are shared, they count in
	// the same counters. If they keep a deadline, it is 200 ms or more.
	Stores []core.Store
	// Gone makes the stores' backend stop answering, without closing
	// connections. nil: they have no backend.
	Gone func()
}

// goneAfter is how long an operation may take before it counts as hanging.
const goneAfter = 10 * time.Second

// Guarantees tests that a store's guarantees are want, and that the store keeps them.
// What want does not promise is not tested.
func Guarantees(t *testing.T, want core.Guarantees, newInstances func(t testing.TB) Instances) {
	s := &guarantees{want, newInstances}
	t.Run("Returned", s.returned)
	t.Run("Shared", s.shared)
	t.Run("Exact", s.exact)
	t.Run("OneStep", s.oneStep)
	t.Run("Gone", s.gone)
}

type guarantees struct {
	want core.Guarantees
	new  func(t testing.TB) Instances
}

func (s *guarantees) returned(t *testing.T) {
	for i, store := range s.new(t).Stores {
		if got := store.Guarantees(); got != s.want {
			t.Errorf("store %d: %+v, want %+v", i, got, s.want)
		}
	}
}

// bound binds all stores to the same limiter.
func (s *guarantees) bound(t *testing.T, quota int64) ([]*counter, Instances) {
	t.Helper()
	in := s.new(t)
	if len(in.Stores) < 2 {
		t.Fatal("Instances.Stores: there must be two or more")
	}
	name := uniqueName()
	limit := core.Limit{Name: "l", Quota: quota, Window: 24 * time.Hour, Algorithm: core.FixedWindow, Aligned: true}
	rules := []core.StoreRule{{Name: "a", Limits: []core.Limit{limit}}, {Name: "b", Limits: []core.Limit{limit}}}
	var counters []*counter
	for _, store := range in.Stores {
		b, err := store.Open(name, rules)
		if err != nil {
			t.Fatal(err)
		}
		counters = append(counters, &counter{t, b, rules, store.Guarantees().Ops})
	}
	return counters, in
}

// shared tests that the hits of one store count in the others, or that they do
// not. Stores that are not exact are not tested, because they may notice later.
func (s *guarantees) shared(t *testing.T) {
	if s.want.Shared && !s.want.Exact {
		return
	}
	counters, _ := s.bound(t, 10)
	counters[0].take("k", 4)
	want := int64(6)
	if !s.want.Shared {
		want = 10
	}
	if got := counters[1].remaining("k"); got != want {
		t.Errorf("Shared is %v: after 4 of 10 hits in one store, another one has %d left, want %d", s.want.Shared, got, want)
	}
}

// exact tests that all stores together admit exactly the quota.
func (s *guarantees) exact(t *testing.T) {
	if !s.want.Exact {
		return
	}
	counters, _ := s.bound(t, 100)
	want := int64(100)
	if !s.want.Shared {
		counters = counters[:1]
	}
	got := admitted(t, func(g, _ int) *core.Batch {
		c := counters[g%len(counters)]
		return c.batch(false, c.item(0, "k", 1))
	})
	if got != want {
		t.Errorf("%d of %d takes were admitted, want %d", got, goroutines*rounds, want)
	}
}

// oneStep tests that one of several takes of the same keys, in any order, is
// admitted: no take is denied because of hits that are then refunded.
func (s *guarantees) oneStep(t *testing.T) {
	if !s.want.OneStep {
		return
	}
	counters, _ := s.bound(t, 1)
	if !s.want.Shared || !s.want.Exact {
		counters = counters[:1]
	}
	for round := range 200 {
		key := fmt.Sprint(round)
		var n atomic.Int64
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				c := counters[g%len(counters)]
				items := []core.Item{c.item(g%2, key, 1), c.item((g+1)%2, key, 1)}
				b := &core.Batch{Items: items}
				if err := Do(context.Background(), c.bound, core.OpTake, b); err != nil {
					t.Errorf("Take: %v", err)
				}
				if b.Allowed {
					n.Add(1)
				}
			})
		}
		wg.Wait()
		if n.Load() != 1 {
			t.Fatalf("round %d: %d takes of two keys were admitted, want 1", round, n.Load())
		}
	}
}

// gone tests what happens if the stores' backend stops answering.
func (s *guarantees) gone(t *testing.T) {
	const quota = 20
	counters, in := s.bound(t, quota)
	if in.Gone == nil {
		return
	}
	c := counters[0]
	refund := c.take("before", 1)
	in.Gone()
	if !s.want.KeepsDeadline {
		return // an operation may hang: nothing can be tested
	}
	for name, op := range map[string]func() error{
		"Take": func() error {
			return Do(context.Background(), c.bound, core.OpTake, &core.Batch{Items: []core.Item{c.item(0, "first", 1)}})
		},
		"Refund": func() error { return Do(context.Background(), c.bound, core.OpRefund, refund) },
		"Reset":  func() error { return Do(context.Background(), c.bound, core.OpReset, refund) },
	} {
		if !inTime(func() { _ = op() }) {
			t.Errorf("%s has not returned after %v, although the store keeps a deadline", name, goneAfter)
			return
		}
	}
	admitted, failed, takes := 0, 0, 2*quota
	if s.want.FailsFast {
		takes = 200
	}
	fast := inTime(func() {
		for range takes {
			b := &core.Batch{Items: []core.Item{c.item(0, "k", 1)}}
			switch err := Do(context.Background(), c.bound, core.OpTake, b); {
			case err != nil:
				failed++
			case b.Allowed:
				admitted++
			}
			if !s.want.FailsFast && failed > 1 {
				return
			}
		}
	})
	switch {
	case !fast:
		t.Errorf("%d takes have not returned after %v, although the store fails fast: %v, or returns errors", takes, goneAfter, s.want.FailsFast)
	case s.want.OnFailure == core.FailClosed && (admitted > 0 || failed == 0):
		t.Errorf("the store fails closed: %d takes were admitted, %d failed", admitted, failed)
	case s.want.OnFailure == core.FailLocal && (admitted > quota || failed > 0):
		t.Errorf("the store counts: %d of %d takes were admitted, at most %d, and %d failed", admitted, takes, quota, failed)
	}
}

// inTime reports whether f ends before it counts as hanging.
func inTime(f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(goneAfter)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
