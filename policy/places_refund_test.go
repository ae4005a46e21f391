package policy

import (
	"context"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// refunds notes whether the refunds that a store is asked for are those of degraded decisions.
type refunds struct {
	core.Bound
	degraded []bool
}

func (r *refunds) Refund(ctx context.Context, batch *core.Batch) error {
	r.degraded = append(r.degraded, batch.Degraded)
	return r.Bound.Refund(ctx, batch)
}

// A store must know which decisions were made without its server: it has not charged their hits.
func TestAStoreLearnsThatADecisionWasDegraded(t *testing.T) {
	bound, err := twoPlaces(t, nil).Bind("l", []core.StoreRule{
		{Name: "even", Limits: []core.Limit{core.PerMinute(5)}}, {Name: "odd", Limits: []core.Limit{core.PerMinute(5)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	shared := &refunds{Bound: bound.(*placesBound).shared}
	bound.(*placesBound).shared = shared
	for _, degraded := range []bool{true, false} {
		b := one(false)
		b.Degraded = degraded
		if err := bound.Refund(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if len(shared.degraded) != 2 || !shared.degraded[0] || shared.degraded[1] {
		t.Errorf("degraded: %v, want the first", shared.degraded)
	}
}
