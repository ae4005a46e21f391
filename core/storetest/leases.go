package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"pgregory.net/rapid"
)

// leases compares random sequences of takes, releases, renewals, resets and new quotas
// with a list of leases. Stores that do not know leases are left out.
func (s *suite) leases(t *testing.T) {
	clock := NewClock(start())
	store := s.new(t, clock.Now)
	if store.Guarantees().Ops&core.OpRelease == 0 {
		t.Skip("the store does not know leases")
	}
	rapid.Check(t, func(r *rapid.T) {
		clock.Set(start())
		p := &leasePlay{r: r, clock: clock, held: map[string]map[uint64]*modelLease{}}
		p.lease = time.Duration(rapid.Int64Range(1_000_000, 40_000_000).Draw(r, "lease")) * time.Microsecond
		for range rapid.IntRange(1, 2).Draw(r, "rules") {
			p.quotas = append(p.quotas, rapid.Int64Range(0, 5).Draw(r, "quota"))
		}
		rules := leaseRules(p.quotas, p.lease)
		bound, err := store.Open(uniqueName(), rules)
		if err != nil {
			r.Fatalf("Open: %v", err)
		}
		p.counter = &counter{t, bound, rules, store.Guarantees().Ops}
		r.Repeat(map[string]func(*rapid.T){
			"take":        func(r *rapid.T) { p.r = r; p.take(false) },
			"again":       func(r *rapid.T) { p.r = r; p.take(false) },
			"peek":        func(r *rapid.T) { p.r = r; p.take(true) },
			"charge":      func(r *rapid.T) { p.r = r; p.chargeOrRefund() },
			"release":     func(r *rapid.T) { p.r = r; p.end() },
			"renew":       func(r *rapid.T) { p.r = r; p.renew() },
			"reset":       func(r *rapid.T) { p.r = r; p.forget() },
			"reconfigure": func(r *rapid.T) { p.r = r; p.reconfigure() },
			"advance": func(r *rapid.T) {
				steps := []time.Duration{1, time.Microsecond, p.lease / 3, p.lease - time.Microsecond, p.lease}
				clock.Advance(rapid.SampledFrom(steps).Draw(r, "by"))
			},
		})
	})
}

// leaseRules returns rules with a limit of leases and a rate that denies nothing.
func leaseRules(quotas []int64, lease time.Duration) []core.StoreRule {
	var rules []core.StoreRule
	for i, q := range quotas {
		rules = append(rules, core.StoreRule{Name: fmt.Sprintf("r%d", i), Limits: []core.Limit{
			{Name: fmt.Sprintf("rate%d", i), Quota: 1_000_000, Window: time.Hour, Algorithm: core.FixedWindow},
			{Name: fmt.Sprintf("l%d", i), Quota: q, Window: lease, Algorithm: core.Leases},
		}})
	}
	return rules
}

// leasePlay is one random sequence.
type leasePlay struct {
	*counter
	r      *rapid.T
	clock  *Clock
	lease  time.Duration
	quotas []int64
	held   map[string]map[uint64]*modelLease // by rule and key
	taken  []*core.Batch                     // takes that were allowed and have not been released
}

type modelLease struct {
	ends time.Time
	cost int64
}

// of returns the leases of an item that have not ended.
func (p *leasePlay) of(it *core.Item) map[uint64]*modelLease {
	name := fmt.Sprintf("%d %s", it.Rule, it.Key)
	if p.held[name] == nil {
		p.held[name] = map[uint64]*modelLease{}
	}
	for id, l := range p.held[name] {
		if !l.ends.After(p.clock.Now()) {
			delete(p.held[name], id)
		}
	}
	return p.held[name]
}

func (p *leasePlay) left(it *core.Item) int64 {
	left := p.quotas[it.Rule]
	for _, l := range p.of(it) {
		left -= l.cost
	}
	return left
}

func (p *leasePlay) items(cost int64) (items []core.Item) {
	for rule := range p.quotas {
		for _, key := range []string{"a", "b"} {
			if rapid.Bool().Draw(p.r, "with") {
				items = append(items, p.item(rule, key, cost))
			}
		}
	}
	return items
}

func (p *leasePlay) take(peek bool) {
	items := p.items(rapid.Int64Range(0, 3).Draw(p.r, "cost"))
	if len(items) == 0 {
		return
	}
	want := true
	lease := nextLease()
	for i := range items {
		it := &items[i]
		if it.Lease = lease; it.Cost > 0 && it.Cost > p.left(it) {
			want = false
		}
	}
	b := p.batch(peek, items...)
	if b.Allowed != want {
		p.r.Fatalf("take of %d by %d items: allowed %v, want %v", items[0].Cost, len(items), b.Allowed, want)
	}
	for i := range b.Items {
		it := &b.Items[i]
		if want && !peek && it.Cost > 0 {
			p.of(it)[it.Lease] = &modelLease{p.clock.Now().Add(p.lease), it.Cost}
		}
		p.check(it)
	}
	if want && !peek && items[0].Cost > 0 {
		p.taken = append(p.taken, b)
	}
}

// check compares the result of an item's limit of leases.
func (p *leasePlay) check(it *core.Item) {
	got, left := it.Results[1], p.left(it)
	fits := it.Cost == 0 || it.Cost <= left || it.Lease != 0 && p.of(it)[it.Lease] != nil
	want := core.Result{Allowed: fits, Remaining: max(0, left)}
	switch {
	case fits:
	case it.Cost > p.quotas[it.Rule]:
		want.RetryAfter = core.Never
	default:
		want.RetryAfter = time.Second
	}
	if !it.Unknown && got != want {
		p.r.Fatalf("rule %d, key %s, cost %d: %+v, want %+v", it.Rule, it.Key, it.Cost, got, want)
	}
}

// look checks what is left of every key.
func (p *leasePlay) look() {
	for rule := range p.quotas {
		for _, key := range []string{"a", "b"} {
			b := p.batch(true, p.item(rule, key, 0))
			p.check(&b.Items[0])
		}
	}
}

// chargeOrRefund must leave leases alone, whatever lease the items name.
func (p *leasePlay) chargeOrRefund() {
	if rapid.Bool().Draw(p.r, "charge") {
		if items := p.items(1); len(items) > 0 {
			p.charge(items...)
		}
	} else if len(p.taken) > 0 {
		taken := rapid.SampledFrom(p.taken).Draw(p.r, "of")
		p.refund(&core.Batch{Items: slices.Clone(taken.Items), Degraded: taken.Degraded})
	}
	p.look()
}

// end releases some takes together, perhaps twice, so that a key has several leases in the
// batch.
func (p *leasePlay) end() {
	var items []core.Item
	p.taken = slices.DeleteFunc(p.taken, func(taken *core.Batch) bool {
		with := rapid.Bool().Draw(p.r, "with")
		if with {
			items = append(items, taken.Items...)
		}
		return with
	})
	for range rapid.IntRange(1, 2).Draw(p.r, "times") {
		p.counter.lease(core.OpRelease, items...)
	}
	for i := range items {
		delete(p.of(&items[i]), items[i].Lease)
	}
	p.look()
}

// renew renews some takes together, so that a key has several leases in the batch.
func (p *leasePlay) renew() {
	var items []core.Item
	for _, taken := range p.taken {
		if rapid.Bool().Draw(p.r, "with") {
			items = append(items, taken.Items...)
		}
	}
	if len(items) == 0 {
		return
	}
	p.counter.lease(core.OpRenew, items...)
	for i := range items {
		p.of(&items[i])[items[i].Lease] = &modelLease{p.clock.Now().Add(p.lease), items[i].Cost}
	}
	p.look()
}

func (p *leasePlay) forget() {
	if items := p.items(0); len(items) > 0 {
		p.reset(items...)
		for i := range items {
			clear(p.of(&items[i]))
		}
	}
	p.look()
}

// reconfigure changes the quotas: what is in flight stays.
func (p *leasePlay) reconfigure() {
	for i := range p.quotas {
		p.quotas[i] = rapid.Int64Range(0, 5).Draw(p.r, "quota")
	}
	p.rules = leaseRules(p.quotas, p.lease)
	bound, err := p.bound.Reopen(p.rules)
	if err != nil {
		p.r.Fatalf("Reopen: %v", err)
	}
	p.bound = bound
	p.look()
}

// leasesAtOnce has many callers take and release one key: never more than the quota hold
// it, and all of it is free in the end.
func (s *suite) leasesAtOnce(t *testing.T) {
	const callers, each, quota = 16, 30, 3
	store := s.new(t, nil)
	rules := leaseRules([]int64{quota}, time.Minute)
	if store.Guarantees().Ops&core.OpRelease == 0 {
		t.Skip("the store does not know leases")
	}
	bound, err := store.Open(uniqueName(), rules)
	if err != nil {
		t.Fatal(err)
	}
	running := make(chan struct{}, quota)
	c := &counter{t, bound, rules, store.Guarantees().Ops}
	work := func(caller int) {
		for i := range each {
			it := c.item(0, "k", 1)
			it.Lease = uint64(caller*each + i + 1)
			b := &core.Batch{Items: []core.Item{it}}
			if err := Do(context.Background(), bound, core.OpTake, b); errors.Is(err, core.ErrContended) {
				continue
			} else if err != nil {
				t.Errorf("Take: %v", err)
			} else if !b.Allowed {
				continue
			}
			select {
			case running <- struct{}{}:
				<-running
			default:
				t.Error("more than the quota at once")
			}
			if err := Do(context.Background(), bound, core.OpRelease, b); err != nil {
				t.Errorf("Release: %v", err)
			}
		}
	}
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() { work(caller) })
	}
	all.Wait()
	if left := c.peek("k", 0).Items[0].Results[1].Remaining; left != quota {
		t.Errorf("%d slots are left in the end, want %d", left, quota)
	}
}

var lastLease atomic.Uint64 // several stores may be tested at the same time

// nextLease returns a lease that no other take has. The bytes of every second one have a
// meaning in patterns, such as those of Lua.
func nextLease() (lease uint64) {
	n := lastLease.Add(1)
	if n%2 == 0 {
		return n * 0x9E3779B97F4A7C15
	}
	const magic = "%.[(*-^$"
	for range 8 {
		lease, n = lease<<8|uint64(magic[n%8]), n/8
	}
	return lease
}
