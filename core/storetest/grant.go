package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
)

// grants reports whether the store is a [core.Granter].
func (c *counter) grants() bool {
	g, ok := c.bound.(core.Granter)
	return ok && !errors.Is(g.Grant(context.Background(), &core.Batch{Items: []core.Item{c.item(0, "grants", 1)}}), core.ErrUnsupported)
}

func (c *counter) grant(items ...core.Item) *core.Batch {
	c.t.Helper()
	b := &core.Batch{Items: items}
	if err := c.bound.(core.Granter).Grant(context.Background(), b); err != nil {
		c.t.Fatalf("Grant: %v", err)
	}
	return b
}

// extras tests that a key gets what it is granted: in each algorithm, up to its whole
// quota, and in no other key.
func (s *suite) extras(t *testing.T) {
	s.each(t, func(t *testing.T, l core.Limit, store core.Store, clock *Clock) {
		c := one(t, store, l)
		if !c.grants() {
			t.Skip("the store grants nothing")
		}
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
	blocker, ok := c.bound.(core.Blocker)
	if !c.grants() || !ok {
		t.Skip("the store does not grant, or block")
	}
	c.take("k", 5)
	err := blocker.Block(context.Background(), &core.Batch{Items: []core.Item{c.item(0, "k", 1)}}, time.Minute)
	if errors.Is(err, core.ErrUnsupported) {
		t.Skip("the store does not block")
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := c.grant(c.item(0, "k", 2)).Items[0].Results[0]; r.Remaining != 0 || r.MoreAfter < time.Minute {
		t.Errorf("blocked: %+v", r)
	}
	if c.take("k", 1).Allowed {
		t.Error("the block has ended")
	}
	clock.Advance(time.Minute)
	if got := c.remaining("k"); got != 2 {
		t.Errorf("%d left after the block, want 2", got)
	}
}

// grantsSeveral tests several limits and keys in one batch, with limits beside them that
// are left alone.
func (s *suite) grantsSeveral(t *testing.T) {
	clock := NewClock(start())
	long := core.Limit{Quota: 9, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 6}
	wait := core.Limit{Quota: 9, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: lockout}
	c := bindRules(t, s.new(t, clock.Now), core.StoreRule{Name: "r", Limits: []core.Limit{core.PerMinute(8), long}}, core.StoreRule{Name: "s", Limits: []core.Limit{core.PerHour(7), wait}})
	if !c.grants() {
		t.Skip("the store grants nothing")
	}
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
	if !c.grants() {
		t.Skip("the store grants nothing")
	}
	const workers, each = 4, 20
	c.take("k", 500)
	var wg sync.WaitGroup
	for range workers {
		for _, do := range []func(*core.Batch) error{
			func(b *core.Batch) error { return c.bound.Take(context.Background(), b) },
			func(b *core.Batch) error { return c.bound.(core.Granter).Grant(context.Background(), b) },
		} {
			wg.Go(func() {
				for range each {
					for {
						err := do(&core.Batch{Items: []core.Item{c.item(0, "k", 2)}})
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

// grant gives back hits of some keys. Hits taken of them before must not be refunded after
// that.
func (p *play) grant() {
	if !p.granter {
		return
	}
	b := &core.Batch{Items: p.drawItems()}
	if b.Items[0].Cost == 0 {
		return
	}
	if err := p.bound.(core.Granter).Grant(context.Background(), b); err != nil {
		p.r.Fatalf("Grant: %v", err)
	}
	if !b.Allowed {
		p.r.Fatalf("Grant has not set Allowed")
	}
	p.taken = nil
	for _, item := range b.Items {
		n := item.Cost
		item.Cost = 0
		for j := range p.state(item) {
			l, done := p.state(item)[j].under(p.quota(item, j))
			l.grant(p.now(), n)
			done()
			if want := p.result(item, j, false, true); item.Results[j] != want {
				p.r.Fatalf("rule %d, key %q, limit %v, %d granted, quotas %d: result %+v, model says %+v", item.Rule, item.Key, p.rules[item.Rule].Limits[j], n, item.Quotas, item.Results[j], want)
			}
		}
	}
}

// reconfigure changes the quotas of the rules, but not of those whose burst would be
// another part of the quota: what is owed at the old quota is reckoned with the new part.
func (p *play) reconfigure() {
	p.rules = slices.Clone(p.rules) // the store keeps what it was given
	for i := range p.rules {
		rule := &p.rules[i]
		rule.Limits = slices.Clone(rule.Limits)
		for j := range rule.Limits {
			if l := &rule.Limits[j]; l.Lockout == (core.Lockout{}) && l.Burst == 0 {
				l.Quota = rapid.Int64Range(0, 7).Draw(p.r, "new quota")
			}
		}
	}
	bound, err := p.bound.Rebind(p.rules)
	if err != nil {
		p.r.Fatalf("Rebind: %v", err)
	}
	p.bound, p.counter.rules, p.taken = bound, p.rules, nil
	for name, limits := range p.states {
		var rule int
		_, _ = fmt.Sscan(name, &rule)
		for j := range limits {
			limits[j].Limit = p.rules[rule].Limits[j]
		}
	}
}

// grant takes back up to n hits that count at t, the newest first.
func (l *modelLimit) grant(t, n int64) {
	if l.Lockout != (core.Lockout{}) {
		return
	}
	switch l.Algorithm {
	case core.TokenBucket:
		if l.Quota > 0 && l.debt.hits != nil {
			owed := l.owes(t)
			l.debt = modelDebt{atLeastNone(owed.Sub(owed, hits(n))), t, l.debt.pays}
		}
	case core.SlidingWindow:
		cur, _, from := l.windows(t, 2)
		newest := min(n, cur)
		l.takeBack(from, t+1, newest)
		for want := max(0, l.used(t)-(n-newest)); n > newest && l.used(t) > want; {
			l.takeBack(from-l.window(), from, 1)
		}
	case core.FixedWindow:
		cur, _, from := l.windows(t, 1)
		l.takeBack(from, t+1, min(n, cur))
	case core.BucketedWindow:
		p := l.Precision.Microseconds()
		l.takeBack((t/p-l.window()/p)*p, t+1, n)
	default:
		l.takeBack(t-l.window()+1, t+1, n)
	}
}

// takeBack takes up to n hits back that were charged in a time, the newest first.
func (l *modelLimit) takeBack(from, to, n int64) {
	for i := len(l.charges) - 1; i >= 0; i-- {
		if c := &l.charges[i]; c.at >= from && c.at < to {
			back := min(n, c.cost)
			c.cost -= back
			n -= back
		}
	}
}
