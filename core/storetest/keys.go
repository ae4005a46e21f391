package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// keys tests that any bytes are a valid key, and that different keys count apart.
func (s *suite) keys(t *testing.T) {
	store := s.new(t, nil)
	c := one(t, store, core.PerHour(3))
	odd := []string{
		"", "\x00", "\x00\x00", " ", "a b", "\t", "a\r\nset x 0 0 1\r\n1", "\x7f", "{a}", "%", "*", "é", "e\u0301", "\xff\xfe",
		"2001:db8::1", "2001:db8:", strings.Repeat("k", 250), strings.Repeat("k", 251), strings.Repeat("k", 10_000), strings.Repeat("k", 10_001),
	}
	for i, key := range odd {
		cost := int64(i%3 + 1)
		if b := c.take(key, cost); !b.Allowed || b.Items[0].Results[0].Remaining != 3-cost {
			t.Errorf("key %.20q (%d bytes): %+v", key, len(key), b.Items[0].Results)
		}
	}
	for i, key := range odd {
		if got, want := c.remaining(key), int64(3-i%3-1); got != want {
			t.Errorf("key %.20q (%d bytes): %d left, want %d", key, len(key), got, want)
		}
	}
	c.reset(c.item(0, "a b", 0))
	if got := c.remaining("a b"); got != 3 {
		t.Errorf("%d left after Reset, want 3", got)
	}
	if got := c.remaining("\t"); got != 3-taken(odd, "\t") {
		t.Errorf("Reset of one key changed another")
	}

	two := bindRules(t, store,
		core.StoreRule{Name: "a", Limits: []core.Limit{core.PerHour(3)}},
		core.StoreRule{Name: "b", Limits: []core.Limit{core.PerHour(3)}})
	two.take("k", 1)
	if got := two.batch(true, two.item(1, "k", 0)).Items[0].Results[0].Remaining; got != 3 {
		t.Errorf("two rules share a counter: %d left", got)
	}
	if got := one(t, store, core.PerHour(3)).remaining("k"); got != 3 {
		t.Errorf("two limiters share a counter: %d left", got)
	}
}

// taken returns how many hits the test takes of a key.
func taken(odd []string, key string) int64 {
	for i, k := range odd {
		if k == key {
			return int64(i%3 + 1)
		}
	}
	return 0
}

// bind tests that a limiter's name can be bound once.
func (s *suite) bind(t *testing.T) {
	store := s.new(t, nil)
	rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(3)}}}
	name := uniqueName()
	if _, err := store.Open(name, rules); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(name, rules); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), name) {
		t.Errorf("binding %q twice: error %v, want one that wraps ErrConfig and has the name", name, err)
	}
}

// rebind tests that a limit that stays keeps its counters.
func (s *suite) rebind(t *testing.T) {
	s.each(t, func(t *testing.T, l core.Limit, store core.Store, _ *Clock) {
		c := one(t, store, l)
		c.take("k", 2)
		again := func(rules ...core.StoreRule) {
			t.Helper()
			bound, err := c.bound.Reopen(rules)
			if err != nil {
				t.Fatal(err)
			}
			c = &counter{t, bound, rules, store.Guarantees().Ops}
		}
		// A higher and a lower quota keep the two hits; a token bucket keeps them as near as whole
		// hits allow.
		higher, lower := l, l
		higher.Quota, higher.Burst = 2*l.Quota, 2*l.Burst
		again(core.StoreRule{Name: "r", Limits: []core.Limit{higher}})
		if got, want := c.remaining("k"), max(higher.Quota, 0)-2; l.Burst == 0 && got != want {
			t.Errorf("%v raised to %v: %d left, want %d", l, higher, got, want)
		} else if l.Burst > 0 && got != higher.Burst-2 {
			t.Errorf("%v raised to %v: %d left, want %d", l, higher, got, higher.Burst-2)
		}
		lower.Quota, lower.Burst = 3, min(l.Burst, 3)
		again(core.StoreRule{Name: "r", Limits: []core.Limit{{Quota: 9, Window: 24 * time.Hour}, lower}})
		b := c.peek("k", 0).Items[0].Results
		if b[1].Remaining != 1 || b[0].Remaining != 9 {
			t.Errorf("%v lowered to %v beside a new limit: %d and %d left, want 1 and 9", l, lower, b[1].Remaining, b[0].Remaining)
		}
		c.take("k", 1)
		again(core.StoreRule{Name: "r", Limits: []core.Limit{lower}}, core.StoreRule{Name: "s", Limits: []core.Limit{l}})
		if got := c.remaining("k"); got != 0 {
			t.Errorf("%v: %d left when the limit beside it has gone, want 0", l, got)
		}
		if l.Burst == 0 { // a quota of 0 keeps the count as well
			zero := lower
			zero.Quota = 0
			again(core.StoreRule{Name: "r", Limits: []core.Limit{zero}}, core.StoreRule{Name: "s", Limits: []core.Limit{l}})
			if c.take("k", 1).Allowed {
				t.Errorf("%v: allowed at a quota of 0", l)
			}
			again(core.StoreRule{Name: "r", Limits: []core.Limit{lower}}, core.StoreRule{Name: "s", Limits: []core.Limit{l}})
			if got := c.remaining("k"); got != 0 {
				t.Errorf("%v: %d left after the quota was 0 for a while, want 0", l, got)
			}
		}
		// Limits in another order keep their counters.
		other := core.Limit{Quota: 9, Window: 24 * time.Hour}
		again(core.StoreRule{Name: "r", Limits: []core.Limit{other, l}}, core.StoreRule{Name: "s", Limits: []core.Limit{l}})
		before := c.take("order", 2).Items[0].Results
		again(core.StoreRule{Name: "r", Limits: []core.Limit{l, other}}, core.StoreRule{Name: "s", Limits: []core.Limit{l}})
		if after := c.peek("order", 0).Items[0].Results; after[0].Remaining != before[1].Remaining || after[1].Remaining != 7 {
			t.Errorf("%v: %+v when the limits have changed places, %+v before", l, after, before)
		}
		again(core.StoreRule{Name: "s", Limits: []core.Limit{l}})
		if got := c.remaining("k"); got == 0 {
			t.Errorf("%v: a rule has the counters of another one", l)
		}
	})
}

// raised tests that a token bucket whose quota is raised keeps what is owed, although its burst
// stays: the debt may then be more than the burst would have been at the quota of the charge.
func (s *suite) raised(t *testing.T) {
	limit := core.Limit{Name: "l", Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 100}
	c := one(t, s.new(t, nil), limit)
	if !c.take("k", 100).Allowed || c.remaining("k") != 0 {
		t.Fatalf("%v: %d left after 100 hits", limit, c.remaining("k"))
	}
	for _, quota := range []int64{20, 1000} {
		limit.Quota = quota
		rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{limit}}}
		bound, err := c.bound.Reopen(rules)
		if err != nil {
			t.Fatal(err)
		}
		c = &counter{t, bound, rules, c.ops}
		if got := c.remaining("k"); got != 0 {
			t.Errorf("raised to %v: %d left, want 0", limit, got)
		}
	}
}

// context tests that a charge is neither lost nor made twice if the caller has gone.
func (s *suite) context(t *testing.T) {
	c := one(t, s.new(t, nil), core.PerHour(10))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	charged := int64(0)
	for range 3 {
		err := Do(ctx, c.bound, core.OpTake, &core.Batch{Items: []core.Item{c.item(0, "k", 1)}})
		if err == nil {
			charged++
		}
	}
	if got := 10 - c.remaining("k"); got < charged || got > 3 {
		t.Errorf("3 takes of a caller that has gone, %d of them answered: %d charged", charged, got)
	}
	ctx, cancel = context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	_ = Do(ctx, c.bound, core.OpTake, &core.Batch{Items: []core.Item{c.item(0, "late", 1)}})
	if got := c.remaining("late"); got < 9 {
		t.Errorf("one take after its deadline: %d left of 10", got)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	s.hungUp(t, gone)
}

// hungUp tests that a refund, a reset and a charge are made even if the caller has gone, at once or
// a little later, whatever they return.
func (s *suite) hungUp(t *testing.T, gone context.Context) {
	c := bindRules(t, s.new(t, nil),
		core.StoreRule{Name: "a", Limits: []core.Limit{core.PerHour(10), {Quota: 10, Window: 24 * time.Hour}}},
		core.StoreRule{Name: "b", Limits: []core.Limit{core.PerHour(10)}})
	become := func(what string, want int64) {
		t.Helper()
		left := func() (n int64) {
			for _, it := range c.batch(true, c.item(0, "k", 0), c.item(1, "k", 0)).Items {
				for _, r := range it.Results {
					n += r.Remaining
				}
			}
			return n
		}
		for end := time.Now().Add(30 * time.Second); left() != want; <-time.After(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s of a caller that has gone: %d hits left of three limits, want %d", what, left(), want)
			}
		}
	}
	b := c.batch(false, c.item(0, "k", 3), c.item(1, "k", 3))
	_ = Do(gone, c.bound, core.OpRefund, b)
	become("a refund", 30)
	c.batch(false, c.item(0, "k", 2), c.item(1, "k", 2))
	become("a take", 24)
	_ = Do(gone, c.bound, core.OpReset, &core.Batch{Items: []core.Item{c.item(0, "k", 0), c.item(1, "k", 0)}})
	become("a reset", 30)
	_ = Do(gone, c.bound, core.OpCharge, &core.Batch{Items: []core.Item{c.item(0, "k", 4), c.item(1, "k", 4)}})
	become("a charge", 18)
}
