package storetest

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// chargeDenied charges a batch that is denied to the limits that deny it and count
// denied hits, in the model.
func (p *play) chargeDenied(b *core.Batch) {
	now := p.now()
	for _, item := range b.Items {
		for j := range p.state(item) {
			if p.rules[item.Rule].Limits[j].CountDenied && !p.admits(item, j) {
				l, done := p.state(item)[j].under(p.quota(item, j))
				l.charge(now, item.Cost)
				done()
			}
		}
	}
}

// countsDenied tests limits that count the hits that they deny.
func (s *suite) countsDenied(t *testing.T) {
	clock := NewClock(start())
	store := s.new(t, clock.Now)
	second := func(a core.Algorithm) core.Limit {
		return core.Limit{Quota: 2, Window: time.Second, Algorithm: a, CountDenied: true}
	}
	t.Run("A client that does not stop is never let in", func(t *testing.T) {
		for _, a := range []core.Algorithm{core.SlidingWindow, core.SlidingLog, core.TokenBucket} {
			c := one(t, store, second(a))
			c.take("k", 1)
			c.take("k", 1)
			for range 20 {
				clock.Advance(400 * time.Millisecond)
				b := c.take("k", 1)
				r := b.Items[0].Results[0]
				if b.Allowed || r.Allowed || r.Remaining != 0 || r.RetryAfter == 0 {
					t.Errorf("%v: %+v, want a denial that lasts", a, r)
				}
				for range 3 { // who only looks is not charged
					if again := c.peek("k", 1); again.Allowed || again.Items[0].Results[0] != r {
						t.Errorf("%v: a look after %+v says %+v", a, r, again.Items[0].Results[0])
					}
				}
			}
			clock.Advance(2 * time.Second)
			if b := c.take("k", 1); !b.Allowed {
				t.Errorf("%v: %+v: denied after two windows of rest", a, b.Items[0].Results)
			}
		}
	})
	t.Run("Only the limits that deny and count are charged", func(t *testing.T) {
		hour, day := core.PerHour(1), core.PerDay(5)
		hour.CountDenied = true
		hour.Algorithm, day.Algorithm = core.FixedWindow, core.FixedWindow
		c := bindRules(t, store, core.StoreRule{Name: "a", Limits: []core.Limit{hour, day}}, core.StoreRule{Name: "b", Limits: []core.Limit{core.PerHour(3)}})
		both := func(peek bool) *core.Batch { return c.batch(peek, c.item(0, "k", 1), c.item(1, "k", 1)) }
		both(false)
		both(true)
		both(false) // denied, and charged to the hour
		if both(false).Allowed {
			t.Error("allowed")
		}
		first, second := c.item(0, "k", 1), c.item(1, "k", 1)
		first.Quotas = []int64{10, 10} // so that the results tell the counts
		b := c.batch(true, first, second)
		if hour, day := b.Items[0].Results[0].Remaining, b.Items[0].Results[1].Remaining; hour != 7 || day != 9 {
			t.Errorf("%d and %d of 10 hits left, want 7, after two denied hits, and 9", hour, day)
		}
		if other := b.Items[1].Results[0]; other.Remaining != 2 {
			t.Errorf("the other rule has %+v, want 2 hits left", other)
		}
	})
	t.Run("A key that is not known, and a cost above the quota", func(t *testing.T) {
		c := one(t, store, core.Limit{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow, CountDenied: true})
		if b := c.take("k", 4); b.Allowed || b.Items[0].Results[0].RetryAfter != core.Never {
			t.Errorf("%+v", b.Items[0].Results)
		}
		if left := c.remaining("k"); left != 0 {
			t.Errorf("%d hits left, want none: four were charged", left)
		}
		c.batch(true, c.item(0, "other", 4))
		if left := c.remaining("other"); left != 3 {
			t.Errorf("%d hits left after a peek, want 3", left)
		}
	})
	t.Run("A cost far above the quota", func(t *testing.T) {
		for _, l := range variants() {
			if l.Lockout != (core.Lockout{}) {
				continue
			}
			l.CountDenied = true
			c := one(t, store, l)
			c.take("k", 1) // so that the key is known
			for _, cost := range []int64{core.MaxQuota, math.MaxInt64 - core.MaxQuota + 1, math.MaxInt64} {
				if b := c.take("k", cost); b.Allowed || b.Items[0].Results[0].RetryAfter != core.Never || b.Items[0].Results[0].Remaining != 0 {
					t.Errorf("%v: a cost of %d: %+v", l, cost, b.Items[0].Results[0])
				}
			}
			r := c.peek("k", 1).Items[0].Results[0]
			if r.RetryAfter <= 0 || r.RetryAfter > 3*l.Window {
				t.Errorf("%v: %+v, want a wait of less than three windows", l, r)
			}
			clock.Advance(r.RetryAfter)
			if !c.peek("k", 1).Allowed {
				t.Errorf("%v: denied at RetryAfter", l)
			}
		}
	})
	t.Run("A key that is blocked", func(t *testing.T) {
		c := one(t, store, core.Limit{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow, CountDenied: true})
		blocker, ok := c.bound.(core.Blocker)
		if !ok {
			return
		}
		batch := func() *core.Batch { return &core.Batch{Items: []core.Item{c.item(0, "k", 1)}} }
		if err := blocker.Block(context.Background(), batch(), time.Minute); err != nil {
			return // it wraps one that cannot
		}
		c.take("k", 1)
		if err := blocker.Block(context.Background(), batch(), 0); err != nil {
			t.Fatal(err)
		}
		if left := c.remaining("k"); left != 3 {
			t.Errorf("%d hits left, want 3: the block has denied the hit, and not the limit", left)
		}
	})
	t.Run("A key that is over its limit and blocked", func(t *testing.T) {
		for block, want := range map[time.Duration]time.Duration{time.Minute: time.Hour, 2 * time.Hour: 2 * time.Hour} {
			c := one(t, store, core.Limit{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow, CountDenied: true})
			blocker, ok := c.bound.(core.Blocker)
			if !ok {
				return
			}
			c.take("k", 3)
			if err := blocker.Block(context.Background(), &core.Batch{Items: []core.Item{c.item(0, "k", 1)}}, block); err != nil {
				return // it wraps one that cannot
			}
			for range 2 { // the limit is charged for the first one, and says the same then
				b := c.take("k", 1)
				if r := b.Items[0].Results[0]; b.Allowed || r.Allowed || r.Remaining != 0 || r.RetryAfter != want || r.ResetAfter != want || r.MoreAfter != want {
					t.Errorf("a block of %v: %+v, want a wait of %v", block, r, want)
				}
			}
			if b := c.take("k", 4); b.Items[0].Results[0].RetryAfter != core.Never {
				t.Errorf("a block of %v: a cost above the quota: %+v, want Never", block, b.Items[0].Results[0])
			}
		}
	})
}
