package resilient

import (
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func TestPart(t *testing.T) {
	for _, c := range []struct{ quota, instances, want int64 }{
		{0, 3, 0}, {1, 3, 1}, {3, 3, 1}, {4, 3, 2}, {core.Unlimited, 3, core.Unlimited}, {core.MaxQuota, 1, core.MaxQuota},
	} {
		if got := part(c.quota, c.instances); got != c.want {
			t.Errorf("the part of %d of %d instances: %d, want %d", c.quota, c.instances, got, c.want)
		}
	}
}

// The quotas of an outage find their limits again after a Rebind, by what counts in
// the same counter.
func TestAPlanAfterARebind(t *testing.T) {
	hour := core.Limit{Quota: 5, Window: time.Hour}
	minute := core.Limit{Quota: 2, Window: time.Minute, Algorithm: core.TokenBucket}
	other := core.Limit{Quota: 7, Window: time.Minute, Algorithm: core.SlidingLog}
	p := newPlan([]core.Limit{hour, minute}, []int64{50, core.Unlimited})
	again := hour
	again.Quota = 6
	if got, want := p.of([]core.Limit{other, minute, again}), []int64{7, core.Unlimited, 50}; !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
	if newPlan(nil, nil).of([]core.Limit{hour}) != nil {
		t.Error("a request without quotas of its own has some")
	}
}

// A gauge reads what is counted beyond the limit's own quota.
func TestAGaugeReadsBeyondTheQuota(t *testing.T) {
	b := bindOne(t, 10)
	for _, l := range []core.Limit{
		{Quota: 5, Window: time.Hour},
		{Quota: 5, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 20},
		{Quota: 5, Window: time.Hour, Algorithm: core.SlidingLog},
		{Quota: 5, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
	} {
		rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{l}}}
		local, err := b.Store.local.Bind(l.String(), rules)
		if err != nil {
			t.Fatal(err)
		}
		g := newGauges(rules)[0]
		batch := newHit()
		it := &batch.Items[0]
		it.Cost, it.Quotas = 40, []int64{100}
		if err := local.Take(t.Context(), batch); err != nil || !batch.Allowed {
			t.Fatal(batch.Allowed, err)
		}
		it.Cost, it.Quotas = 0, g.quotas
		if err := local.Take(t.Context(), batch); err != nil || g.used(0, &it.Results[0]) != 40 {
			t.Errorf("%v: %d hits are counted, want 40; %v", l, g.used(0, &it.Results[0]), err)
		}
	}
}

// What the process and the store have both charged is known no more once both have
// refunded it, during a payment and between two.
func TestARefundIsNotKnownAnyMore(t *testing.T) {
	b := bindOne(t, 10)
	it := &newHit().Items[0]
	k := b.owed.key(it)
	b.owed.add(k, debt{sure: 3, known: 2, until: b.now() + 1_000_000}, "", false, b.now())
	refund := func(degraded bool) {
		t.Helper()
		if err := b.owed.refund(t.Context(), &core.Batch{Items: []core.Item{*it}, Degraded: degraded}); err != nil {
			t.Fatal(err)
		}
	}
	if refund(false); b.owed.debts[k].known != 1 || b.owed.debts[k].sure != 3 {
		t.Errorf("%+v, want 1 known and 3 owed", b.owed.debts[k])
	}
	if refund(true); b.owed.debts[k].known != 1 || b.owed.debts[k].sure != 2 {
		t.Errorf("%+v, want 1 known and 2 owed", b.owed.debts[k])
	}
	c := b.owed.claim(it)
	refund(false)
	refund(false)
	refund(true)
	if p := c.payment; p.known != 0 || p.back != 1 {
		t.Errorf("%+v, want none known and 1 refunded", p)
	}
	b.owed.paid(c, "", true, false)
	if d := b.owed.debts[k]; d.sure != 1 || d.known != 0 {
		t.Errorf("%+v, want 1 owed", d)
	}
}

// Nor are they once both have granted them back. What is owed stays owed.
func TestAGrantIsNotKnownAnyMore(t *testing.T) {
	b := bindOne(t, 10)
	it := &newHit().Items[0]
	k := b.owed.key(it)
	b.owed.add(k, debt{sure: 3, known: 2, until: b.now() + 1_000_000}, "", false, b.now())
	grant := func() {
		t.Helper()
		if err := b.owed.grant(t.Context(), &core.Batch{Items: []core.Item{*it}}); err != nil {
			t.Fatal(err)
		}
	}
	if grant(); b.owed.debts[k].known != 1 || b.owed.debts[k].sure != 3 {
		t.Errorf("%+v, want 1 known and 3 owed", b.owed.debts[k])
	}
	c := b.owed.claim(it)
	grant()
	grant()
	if p := c.payment; p.known != 0 || p.back != 0 {
		t.Errorf("%+v, want none known and none refunded", p)
	}
}

// Of hits that come during a payment, those that are refunded are not set aside.
func TestARefundDuringAPayment(t *testing.T) {
	b := bindOne(t, 10)
	it := &newHit().Items[0]
	k := b.owed.key(it)
	add := func(sure, unsure int64) {
		b.owed.add(k, debt{sure: sure, unsure: unsure, until: b.now() + 1_000_000}, "", false, b.now())
	}
	add(1, 0)
	c := b.owed.claim(it)
	add(2, 1)
	c.payment.later = 3
	for range 2 {
		if err := b.owed.refund(t.Context(), &core.Batch{Items: []core.Item{*it}, Degraded: true}); err != nil {
			t.Fatal(err)
		}
	}
	if d := b.owed.debts[k]; d.sure != 1 || d.unsure != 0 || c.payment.later != 1 || c.payment.back != 0 {
		t.Errorf("%+v, %+v; want 1 owed, and 1 set aside", d, c.payment)
	}
}
