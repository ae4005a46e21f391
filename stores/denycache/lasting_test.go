package denycache_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

func hourly(n int64) core.StoreRule {
	return rule(core.Limit{Quota: n, Window: time.Hour, Algorithm: core.FixedWindow})
}

// A denial is remembered for a second at most, and one caller asks again a
// little earlier.
func TestADenialIsRememberedForASecond(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	f.take(f.item(0, "k", 1))
	f.take(f.item(0, "k", 1))
	for second := range 5 {
		n := f.asked(func() {
			for range 90 {
				f.clock.Advance(9_999 * time.Microsecond)
				if f.take(f.item(0, "k", 1)).Allowed {
					t.Fatal("allowed")
				}
			}
		})
		if n != 0 {
			t.Errorf("second %d: the store was asked %d times in 0.9 s", second, n)
		}
		f.clock.Advance(90 * 2 * time.Microsecond)
		if n := f.asked(func() { f.take(f.item(0, "k", 1)) }); n != 1 {
			t.Errorf("second %d: asked %d times after 0.9 s, want 1", second, n)
		}
	}
}

// While one caller asks again, the others are denied without asking.
func TestOneCallerAsksAgain(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	f.take(f.item(0, "k", 1))
	f.take(f.item(0, "k", 1))
	f.clock.Advance(950 * time.Millisecond)
	n := f.asked(func() {
		f.inner.meanwhile = func() {
			f.inner.meanwhile = nil
			for range 100 {
				f.take(f.item(0, "k", 1))
			}
		}
		f.take(f.item(0, "k", 1))
	})
	if n != 1 {
		t.Errorf("asked %d times, want 1", n)
	}
	f.clock.Advance(time.Second)
	if n := f.asked(func() { f.take(f.item(0, "k", 1)) }); n != 1 {
		t.Error("not asked after the bound")
	}
}

// Of two processes that share the counters, one resets a key: the other lets it
// in within a second.
func TestAResetElsewhereIsNoticedWithinASecond(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	other, err := denycache.New(fixed{f.bound}, denycache.Config{Clock: f.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	there, err := other.Bind("l", f.rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{0, time.Millisecond, 500 * time.Millisecond, 899 * time.Millisecond, 999 * time.Millisecond} {
		f.take(f.item(0, "k", 1))
		b := &core.Batch{Items: []core.Item{f.item(0, "k", 1)}}
		if err := there.Take(t.Context(), b); err != nil || b.Allowed {
			t.Fatalf("allowed %v, error %v", b.Allowed, err)
		}
		f.clock.Advance(after)
		if err := f.bound.Reset(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		waited := time.Duration(0)
		for {
			if err := there.Take(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if b.Allowed {
				break
			}
			f.clock.Advance(10 * time.Millisecond)
			if waited += 10 * time.Millisecond; waited > time.Second {
				t.Fatalf("%v after the denial: still denied %v after the reset", after, waited)
			}
		}
		_ = there.Reset(t.Context(), b)
	}
}

// A caller that finds a key allowed again lets the others in at once.
func TestWhoAsksAgainTellsTheOthers(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(2))
	f.take(f.item(0, "k", 2))
	f.take(f.item(0, "k", 1))
	f.clock.Advance(900 * time.Millisecond)
	if err := f.inner.Store.(resets).reset("k"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !f.take(f.item(0, "k", 1)).Allowed {
			t.Error("denied although the key was found reset")
		}
	}
}

// What a store that takes items one by one denies may be due to hits that are
// given back: only the denial of a single item is remembered.
func TestATransientDenialIsNotRemembered(t *testing.T) {
	for _, slots := range []bool{true, false} {
		f := newFixture(t, denycache.Config{}, hourly(1))
		f.inner.slots = slots
		f.take(f.item(0, "a", 1))
		f.take(f.item(0, "b", 1), f.item(0, "a", 1))
		want := int64(0)
		if slots {
			want = 1
		}
		if n := f.asked(func() { f.take(f.item(0, "b", 1), f.item(0, "a", 1)) }); n != want {
			t.Errorf("one by one %v: asked %d times, want %d", slots, n, want)
		}
		f.take(f.item(0, "a", 1))
		if n := f.asked(func() { f.take(f.item(0, "a", 1)) }); n != 0 {
			t.Errorf("one by one %v: a single item: asked %d times", slots, n)
		}
	}
}

// Of limits that were not looked at, a decision says nothing.
func TestADecisionSaysNothingOfWhatWasNotLookedAt(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	store := core.Must(denycache.New(core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now})), denycache.Config{Clock: clock.Now}))
	rules := []core.Rule{
		{Name: "user", Limits: []core.Limit{core.PerMinute(50), core.PerHour(100)}},
		{Name: "ip", Limits: []core.Limit{core.PerHour(1)}},
	}
	l := core.Must(core.New(core.Config{Name: "l", Store: store, Rules: rules}))
	user, ip := core.Hit{Rule: "user", Key: "alice"}, core.Hit{Rule: "ip", Key: "192.0.2.1"}
	for range 3 {
		if _, err := l.Take(t.Context(), 1, ip); err != nil {
			t.Fatal(err)
		}
	}
	for _, hits := range [][]core.Hit{{user, ip}, {ip, user}} {
		d, err := l.Take(t.Context(), 1, hits...)
		if err != nil || d.Allowed || d.Rule() != "ip" || d.RetryAfter <= 0 || store.Refused() == 0 {
			t.Fatalf("%v, %v", d, err)
		}
		var names []string
		for s := range d.Limits() {
			names = append(names, s.Limit.Name)
		}
		if text := strings.Join(names, " "); text != "ip" {
			t.Errorf("limits %q, want only that of ip", text)
		}
		for _, h := range d.AppendHeaders(nil) {
			if strings.Contains(h.Value, "user") {
				t.Errorf("%s: %s", h.Name, h.Value)
			}
		}
		if d.StoredKey() != (core.StoreRule{Name: "ip"}).StoredKey("l", []byte("192.0.2.1\x00")) {
			t.Errorf("stored key %s", d.StoredKey())
		}
	}
}

// resets is a store whose counters can be reset behind the cache's back.
type resets struct {
	core.Store
	b *core.Bound
}

func (r resets) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := r.Store.Bind(limiter, rules)
	*r.b = b
	return b, err
}

func (r resets) reset(key string) error {
	return (*r.b).Reset(context.Background(), &core.Batch{Items: []core.Item{{Key: []byte(key), Results: make([]core.Result, 1)}}})
}

// A Reset that comes while others are denied is never undone by what they have
// heard before.
func TestResetsAndDenialsAtOnce(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for range 300 {
				b := &core.Batch{Items: []core.Item{f.item(0, "k", 1)}}
				_ = f.bound.Take(context.Background(), b)
				if g == 0 {
					_ = f.bound.Reset(context.Background(), b)
				}
			}
		})
	}
	wg.Wait()
	b := &core.Batch{Items: []core.Item{f.item(0, "k", 1)}}
	_ = f.bound.Reset(context.Background(), b)
	if err := f.bound.Take(context.Background(), b); err != nil || !b.Allowed {
		t.Errorf("allowed %v, error %v after a reset", b.Allowed, err)
	}
}
