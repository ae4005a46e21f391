package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func (c *counter) grant(items ...core.Item) *core.Batch {
	c.t.Helper()
	b := &core.Batch{Items: items}
	if err := Do(context.Background(), c.bound, core.OpGrant, b); err != nil {
		c.t.Fatalf("Grant: %v", err)
	}
	return b
}

// extras tests that a key gets what it is granted: in each algorithm, up to its whole
// quota, and in no other key.
func (s *suite) extras(t *testing.T) {
	s.each(t, func(t *testing.T, l core.Limit, store core.Store, clock *Clock) {
		c := one(t, store, l)
		c.needs(core.OpGrant)
		most := c.remaining("k")
		if b := c.grant(c.item(0, "k", 3)); !b.Allowed || b.Items[0].Results[0] != (core.Result{Allowed: true, Remaining: most}) || b.Items[0].At != clock.Now().UnixMicro() {
			t.Errorf("a key never seen: %+v", b)
		}
		for _, key := range []string{"k", "other"} {
			c.take(key, 1)
			clock.Advance(l.Window / 4)
			c.take(key, most-1-c.missing(key, most))
			c.take(key, 1)
		}
		used, other := most-c.remaining("k"), c.remaining("other")
		if l.Lockout != (core.Lockout{}) {
			before := c.peek("k", 0).Items[0].Results[0]
			if got := c.grant(c.item(0, "k", core.MaxQuota)).Items[0].Results[0]; got != before {
				t.Errorf("a lockout: %+v became %+v", before, got)
			}
			return
		}
		for granted := int64(0); granted <= used; granted++ {
			b := c.grant(c.item(0, "k", 1))
			want := min(most, most-used+granted+1)
			if r := b.Items[0].Results[0]; !b.Allowed || !r.Allowed || r.RetryAfter != 0 || r.Remaining != want || c.remaining("k") != want {
				t.Fatalf("after %d of %d: %+v, want %d left", granted+1, used, b.Items[0], want)
			}
		}
		if !c.take("k", most).Allowed || c.take("k", 1).Allowed {
			t.Error("the key has not got its whole quota, or more than that")
		}
		if got := c.remaining("other"); got != other {
			t.Errorf("another key: %d left, want %d", got, other)
		}

		// A debt is paid off first.
		c.charge(c.item(0, "debt", most+3))
		left := c.grant(c.item(0, "debt", 2)).Items[0].Results[0].Remaining
		again := c.grant(c.item(0, "debt", 2)).Items[0].Results[0].Remaining
		if l.Algorithm != core.SlidingLog && l.Algorithm != core.TokenBucket && (left != 0 || again != 1) {
			t.Errorf("3 above the quota: %d left after 2 hits, and %d after 4; want 0 and 1", left, again)
		}
		if got := c.grant(c.item(0, "debt", core.MaxQuota)).Items[0].Results[0].Remaining; got != most {
			t.Errorf("%d left after all was granted, want %d", got, most)
		}

		// Refunds of what was granted since make no counter negative.
		old := c.take("refunded", most)
		c.grant(c.item(0, "refunded", most-1))
		c.refund(old)
		c.refund(old)
		if got := c.remaining("refunded"); got != most {
			t.Errorf("%d left after a refund and a grant of the same hits, want %d", got, most)
		}
		if !c.take("refunded", most).Allowed || c.take("refunded", 1).Allowed {
			t.Error("a refund and a grant of the same hits are more than the quota")
		}

		// Hits that no longer count are not there to be given back.
		c.take("gone", most)
		clock.Advance(l.Lifetime())
		if got := c.grant(c.item(0, "gone", 1)).Items[0].Results[0]; got != (core.Result{Allowed: true, Remaining: most}) {
			t.Errorf("after all hits have gone: %+v", got)
		}
		if !c.take("gone", most).Allowed || c.take("gone", 1).Allowed {
			t.Error("a grant of hits that have gone changes what the key may take")
		}

		// A clock that has been set back by more than a window makes no grant smaller.
		if !s.keepsTime {
			c.take("back", most)
			clock.Advance(-3 * l.Window)
			if got := c.grant(c.item(0, "back", 1)).Items[0].Results[0].Remaining; got != 1 {
				t.Errorf("after the clock has been set back: %d left, want 1", got)
			}
			clock.Advance(3 * l.Window)
		}

		// With quotas of their own, and without any.
		c.take("quotas", most)
		it := c.item(0, "quotas", 1)
		it.Quotas = []int64{core.Unlimited}
		if b := c.grant(it); !b.Allowed || c.remaining("quotas") != 1 {
			t.Errorf("an unlimited quota: %+v, %d left", b, c.remaining("quotas"))
		}
		it.Quotas = []int64{l.Quota * 3}
		if b := c.grant(it); !b.Allowed || c.remaining("quotas") != 2 || b.Items[0].Results[0].Remaining <= 2 {
			t.Errorf("three times the quota: %+v, %d left", b, c.remaining("quotas"))
		}
	})
	t.Run("Block", s.grantsBlocked)
	t.Run("OwnQuotas", s.grantsOwnQuotas)
	t.Run("Several", s.grantsSeveral)
	t.Run("AtOnce", s.grantsAtOnce)
}

// missing returns how many hits of the quota are gone beside the one that was just taken.
func (c *counter) missing(key string, most int64) int64 {
	return max(0, most-c.remaining(key)-1)
}

// grantsBlocked tests that a block outlasts a grant, and hides it until it ends.
func (s *suite) grantsBlocked(t *testing.T) {
	clock := NewClock(start())
	c := one(t, s.new(t, clock.Now), core.PerHour(5))
	c.needs(core.OpGrant | core.OpBlock)
	c.take("k", 5)
	if err := Do(context.Background(), c.bound, core.OpBlock, &core.Batch{For: time.Minute, Items: []core.Item{c.item(0, "k", 1)}}); err != nil {
		t.Fatal(err)
	}
	if r := c.take("k", 1).Items[0].Results[0]; min(r.RetryAfter, r.ResetAfter, r.MoreAfter) <= time.Minute {
		t.Errorf("the limit denies for longer than the block: %+v", r)
	}
	if r := c.grant(c.item(0, "k", 5)).Items[0].Results[0]; r.Remaining != 0 || min(r.ResetAfter, r.MoreAfter) < time.Minute {
		t.Errorf("blocked: %+v", r)
	}
	if c.take("k", 1).Allowed {
		t.Error("the block has ended")
	}
	clock.Advance(time.Minute)
	if got := c.remaining("k"); got != 5 {
		t.Errorf("%d left after the block, want 5", got)
	}
}

// grantsOwnQuotas tests keys that have a quota only because of a request's own. What they
// have used is given back in a grant with that quota.
func (s *suite) grantsOwnQuotas(t *testing.T) {
	s.each(t, func(t *testing.T, l core.Limit, store core.Store, clock *Clock) {
		if l.Lockout != (core.Lockout{}) {
			t.Skip("a lockout is left alone")
		}
		l.Quota, l.Burst = 0, 0
		c := one(t, store, l)
		c.needs(core.OpGrant)
		item := func(cost int64) core.Item {
			it := c.item(0, "k", cost)
			it.Quotas = []int64{8}
			return it
		}
		c.batch(false, item(7))
		clock.Advance(time.Millisecond)
		if got := c.grant(item(5)).Items[0].Results[0].Remaining; got != 6 {
			t.Errorf("%d left, want 6", got)
		}
		if !c.batch(false, item(6)).Allowed || c.batch(false, item(1)).Allowed {
			t.Error("the key has not got the hits that it was granted, or more than that")
		}
	})
}

// grantsSeveral tests several limits and keys in one batch, with limits beside them that
// are left alone.
func (s *suite) grantsSeveral(t *testing.T) {
	clock := NewClock(start())
	long := core.Limit{Quota: 9, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 6}
	wait := core.Limit{Quota: 9, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: lockout}
	c := bindRules(t, s.new(t, clock.Now), core.StoreRule{Name: "r", Limits: []core.Limit{core.PerMinute(8), long}}, core.StoreRule{Name: "s", Limits: []core.Limit{core.PerHour(7), wait}})
	c.needs(core.OpGrant)
	c.batch(false, c.item(0, "a", 5), c.item(1, "a", 5))
	b := c.grant(c.item(0, "a", 2), c.item(1, "a", 2), c.item(1, "b", 2))
	var left []int64
	for _, it := range b.Items {
		for _, r := range it.Results {
			left = append(left, r.Remaining)
		}
	}
	if want := []int64{5, 3, 4, 4, 7, 9}; !slices.Equal(left, want) {
		t.Errorf("%d left, want %d", left, want)
	}
}

// grantsAtOnce tests that hits that are taken and granted at the same time are all counted.
func (s *suite) grantsAtOnce(t *testing.T) {
	c := one(t, s.new(t, nil), core.Limit{Quota: 1000, Window: 24 * time.Hour, Algorithm: core.FixedWindow})
	c.needs(core.OpGrant)
	const workers, each = 4, 20
	c.take("k", 500)
	var wg sync.WaitGroup
	for range workers {
		for _, op := range []core.Op{core.OpTake, core.OpGrant} {
			wg.Go(func() {
				for range each {
					for {
						err := Do(context.Background(), c.bound, op, &core.Batch{Items: []core.Item{c.item(0, "k", 2)}})
						if errors.Is(err, core.ErrNotCharged) {
							continue // others were faster too often
						}
						if err != nil {
							t.Error(err)
						}
						break
					}
				}
			})
		}
	}
	wg.Wait()
	if got := c.remaining("k"); got != 500 {
		t.Errorf("%d left, want 500", got)
	}
}
