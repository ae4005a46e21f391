package resilient

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// If a payment fails and the key has been hit since, the debt has the quotas of the last hit.
func TestTheLastHitDecidesTheQuotasOfAFailedPayment(t *testing.T) {
	b := bindOne(t, 10)
	first, last := newPlan(b.rules[0].Limits, []int64{3}), newPlan(b.rules[0].Limits, []int64{5})
	it, until := &newHit().Items[0], b.now()+1_000_000
	k := b.owed.key(it)
	b.owed.add(k, debt{sure: 1, until: until, plan: first}, "", true, b.now())
	c := b.owed.claim(it)
	b.owed.add(k, debt{sure: 1, until: until, plan: last}, "", true, b.now())
	b.owed.paid(c, "", true, true)
	if d := b.owed.debts[k]; d.plan != last || d.sure != 2 {
		t.Errorf("got %+v, want 2 hits with the plan %+v", d, last)
	}
}

// A request's quotas are memory that another request uses later.
func TestAPlanKeepsItsQuotas(t *testing.T) {
	limits, quotas := []core.Limit{core.PerHour(10)}, []int64{3}
	p := newPlan(limits, quotas)
	quotas[0] = 9
	if got := p.of(limits)[0]; got != 3 {
		t.Errorf("got a quota of %d, want 3", got)
	}
}

// A key whose hits are being charged is not noted as one that has used up its quota.
func TestAKeyThatIsBeingPaidIsNotNoted(t *testing.T) {
	b := bindOne(t, 10)
	it := &newHit().Items[0]
	it.At, it.Results[0].ResetAfter = b.now(), time.Second
	b.owed.add(b.owed.key(it), debt{sure: 1, until: b.now() + 1_000_000}, "", true, b.now())
	if b.owed.claim(it) == nil {
		t.Fatal("no claim")
	}
	if b.owed.noteUsedUp(nil, it) || len(b.owed.debts) != 0 {
		t.Errorf("got %+v, want no debt", b.owed.debts)
	}
}

// Hits that were missed are made up with the quotas of the request.
func TestHitsAreMadeUpWithTheQuotasOfTheRequest(t *testing.T) {
	b := bindOne(t, 10)
	it := &newHit().Items[0]
	it.Quotas = []int64{2}
	if got := b.owed.makeUp(it, 5); got != 3 {
		t.Errorf("got %d hits that are still missed, want 3 of 5", got)
	}
}

// A refund that is over leaves nothing.
func TestNothingIsKeptOfEndedRefunds(t *testing.T) {
	b := bindOne(t, 10)
	for range 2 {
		b.giving(t.Context(), newHit().Items)()
	}
	if n := len(b.owed.giving); n != 0 {
		t.Errorf("got %d keys, want none", n)
	}
}

// A debt that is over is replaced. Its key is due once, and no more when the debt is removed.
func TestAKeyIsDueOnceAfterAnEndedDebt(t *testing.T) {
	b := bindOne(t, 10)
	k := owedKey{rule: "user", key: "alice"}
	b.owed.add(k, debt{sure: 1, until: 10}, "", true, 0)
	b.owed.add(k, debt{sure: 1, until: 30}, "", false, 20)
	b.owed.remove(k)
	if got := b.owed.servers(); len(got) != 0 {
		t.Errorf("got keys that are due at %q, want none", got)
	}
}

// A block that the store has rejected once is told in the background again, if a request for the key finds
// that the store does not answer.
func TestABlockThatWasRejectedAndIsToldAgain(t *testing.T) {
	u, k := &untold{most: 10}, owedKey{key: "k"}
	u.add(k, 100, 0)
	for i, failed := range []bool{true, false} {
		b := u.claim(k, 1, false)
		if b == nil {
			t.Fatalf("try %d: no claim", i)
		}
		u.told(k, b, false, failed)
		if got := u.due(1); got == failed {
			t.Errorf("try %d failed for good: %t: due in the background: %t", i, failed, got)
		}
	}
}

// What is copied for the counters of the process is used again for another request.
func TestACopyOfABatchForgetsTheOneBefore(t *testing.T) {
	b := bindOne(t, 10)
	for range 20 {
		m := b.newMirror(newHit())
		if m.known {
			t.Fatal("the store knows hits that it was not asked for")
		}
		m.known = true
		m.free()
	}
}

// rejects is a store that charges several keys, and then says that one of them is damaged.
type rejects struct{ core.Bound }

func (r rejects) Charge(ctx context.Context, batch *core.Batch) error {
	err := r.Bound.Charge(ctx, batch)
	if len(batch.Items) > 1 && err == nil {
		err = fmt.Errorf("one of them: %w", core.ErrDamaged)
	}
	return err
}

// If the store has charged some keys together and says that one cannot be charged, they are charged one by
// one, and none of them twice.
func TestAChargeThatIsMadeAgainKeyByKey(t *testing.T) {
	b := bindOne(t, 10)
	stored := b.inner
	b.inner = rejects{stored}
	var claims []*claim
	for i := range 2 {
		batch := newHit()
		batch.Items[0].Key, batch.Items[0].Cost = fmt.Append(nil, i), 3
		if err := b.local.Take(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		k := b.owed.key(&batch.Items[0])
		b.owed.add(k, debt{sure: 3, until: b.now() + 1_000_000}, "", true, b.now())
		claims = append(claims, b.owed.claim(&batch.Items[0]))
	}
	if err := b.payDue(t.Context(), claims); err != nil {
		t.Error(err)
	}
	for _, c := range claims {
		look := newHit()
		look.Peek, look.Items[0].Key = true, c.name
		if err := stored.Take(t.Context(), look); err != nil || look.Items[0].Results[0].Remaining != 7 {
			t.Errorf("key %s: %d are left, %v, want 7", c.name, look.Items[0].Results[0].Remaining, err)
		}
	}
}

// leaves is a store that has so many hits left, and says nothing of keys that it knows.
type leaves struct {
	core.Bound
	left int64
	took *int64
}

func (l leaves) Take(_ context.Context, batch *core.Batch) error {
	it := &batch.Items[0]
	it.Results[0].Remaining = l.left
	if batch.Allowed = it.Cost <= l.left; batch.Allowed {
		*l.took += it.Cost
	}
	return nil
}

// A cache may have denied a charge without knowing how much is left. Then the charge is tried again, and what
// the store has left is charged.
func TestAChargeThatACacheHasDenied(t *testing.T) {
	b, took := bindOne(t, 10), int64(0)
	c := &claim{name: []byte("alice"), payment: &payment{}}
	it := core.Item{Key: c.name, Cost: 5, Unknown: true, Results: make([]core.Result, 1)}
	if err := b.chargeFitting(t.Context(), leaves{b.inner, 2, &took}, c, due{hits: 5, results: 1}, it); err != nil || took != 2 {
		t.Errorf("got %d hits, %v, want 2", took, err)
	}
}
