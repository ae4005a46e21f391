package policy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
)

// twoPlaces makes a store of which every second name of a rule counts in one
// memory and the others in another.
func twoPlaces(t testing.TB, clock func() time.Time) core.Store {
	t.Helper()
	p := &places{isLocal: func(rule string) bool { return len(rule)%2 == 0 }}
	for _, to := range []*core.Store{&p.local, &p.shared} {
		m, err := core.NewMemory(core.MemoryConfig{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		*to = m
	}
	return p
}

func TestTwoPlacesAreAStore(t *testing.T) {
	storetest.Run(t, twoPlaces, storetest.GivesBack())
}

func TestTwoPlacesDoOperations(t *testing.T) { storetest.Operations(t, twoPlaces) }

// one returns a batch for the rules 0, which counts locally, and 1.
func one(peek bool) *core.Batch {
	b := &core.Batch{Peek: peek}
	for rule := range 2 {
		b.Items = append(b.Items, core.Item{Rule: rule, Key: []byte("k"), Cost: 1, Results: make([]core.Result, 1)})
	}
	return b
}

func TestWhatTheSharedStoreDeniesIsGivenBackLocally(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_700_000_000, 0))
	bound, err := twoPlaces(t, clock.Now).Bind("l", []core.StoreRule{
		{Name: "even", Limits: []core.Limit{{Name: "even", Quota: 5, Window: time.Minute}}},
		{Name: "odd", Limits: []core.Limit{{Name: "odd", Quota: 2, Window: time.Minute}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		b := one(false)
		if err := bound.Take(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		wantLocal, wantShared := int64(max(3, 4-i)), int64(max(0, 1-i))
		if local, shared := b.Items[0].Results[0].Remaining, b.Items[1].Results[0].Remaining; b.Allowed != (i < 2) || local != wantLocal || shared != wantShared {
			t.Errorf("take %d: allowed %v, %d and %d left, want %d and %d", i+1, b.Allowed, local, shared, wantLocal, wantShared)
		}
		if b.Items[0].Rule != 0 || b.Items[1].Rule != 1 {
			t.Errorf("take %d changed the items' rules: %d and %d", i+1, b.Items[0].Rule, b.Items[1].Rule)
		}
	}
	for i := range 3 {
		b := one(true)
		if err := bound.Take(t.Context(), b); err != nil || b.Allowed || b.Items[0].Results[0].Remaining != 3 {
			t.Errorf("look %d: allowed %v, %d left locally, want 3: it has charged nothing (%v)", i+1, b.Allowed, b.Items[0].Results[0].Remaining, err)
		}
	}
}

// withoutBound fails the test if it is given a batch without items.
type withoutBound struct {
	core.Bound
	t testing.TB
}

func (b withoutBound) see(batch *core.Batch) {
	b.t.Helper()
	if len(batch.Items) == 0 {
		b.t.Error("a store is asked about no key")
	}
}

func (b withoutBound) Take(ctx context.Context, batch *core.Batch) error {
	b.see(batch)
	return b.Bound.Take(ctx, batch)
}

func (b withoutBound) Refund(ctx context.Context, batch *core.Batch) error {
	b.see(batch)
	return b.Bound.Refund(ctx, batch)
}

func (b withoutBound) Reset(ctx context.Context, batch *core.Batch) error {
	b.see(batch)
	return b.Bound.Reset(ctx, batch)
}

// A store is not asked about a batch of which it has no key: that would be a round
// trip, or a failure of what the operation does not need.
func TestAStoreWithoutAKeyOfTheBatchIsNotAsked(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_700_000_000, 0))
	rules := []core.StoreRule{
		{Name: "even", Limits: []core.Limit{{Name: "even", Quota: 1, Window: time.Minute}}},
		{Name: "odd", Limits: []core.Limit{{Name: "odd", Quota: 1, Window: time.Minute}}},
	}
	bound, err := twoPlaces(t, clock.Now).Bind("l", rules)
	if err != nil {
		t.Fatal(err)
	}
	b := bound.(*placesBound)
	b.local, b.shared = withoutBound{b.local, t}, withoutBound{b.shared, t}
	for rule := range rules {
		for _, allowed := range []bool{true, false} {
			batch := one(false)
			batch.Items = batch.Items[rule : rule+1]
			if err := bound.Take(t.Context(), batch); err != nil || batch.Allowed != allowed {
				t.Errorf("rule %d: allowed %v, %v; want %v", rule, batch.Allowed, err, allowed)
			}
		}
		for _, do := range []func(context.Context, *core.Batch) error{bound.Refund, bound.Reset} {
			batch := one(false)
			batch.Items = batch.Items[rule : rule+1]
			if err := do(t.Context(), batch); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestWhatIsDeniedLocallyIsNotAskedElsewhere(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_700_000_000, 0))
	store := twoPlaces(t, clock.Now)
	asked := &failing{Store: store.(*places).shared}
	store.(*places).shared = asked
	bound, err := store.Bind("l", []core.StoreRule{
		{Name: "even", Limits: []core.Limit{{Name: "even", Quota: 1, Window: time.Minute}}},
		{Name: "odd", Limits: []core.Limit{{Name: "odd", Quota: 9, Window: time.Minute}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		b := one(false)
		if err := bound.Take(t.Context(), b); err != nil || b.Allowed != (i == 0) || b.Items[1].Unknown != (i > 0) {
			t.Errorf("take %d: %v, allowed %v, the other item unknown %v", i+1, err, b.Allowed, b.Items[1].Unknown)
		}
	}
	if asked.takes != 1 {
		t.Errorf("the shared store was asked %d times, want once", asked.takes)
	}
}

// failing is a store that counts its takes, and fails if fault is set.
type failing struct {
	core.Store
	core.Bound
	takes int
	fault error
}

func (s *failing) Bind(limiter string, rules []core.StoreRule) (_ core.Bound, err error) {
	s.Bound, err = s.Store.Bind(limiter, rules)
	return s, err
}

func (s *failing) Take(ctx context.Context, b *core.Batch) error {
	s.takes++
	if s.fault != nil {
		return s.fault
	}
	return s.Bound.Take(ctx, b)
}

func (s *failing) Charge(ctx context.Context, b *core.Batch) error {
	if s.fault != nil {
		return s.fault
	}
	return s.Bound.Charge(ctx, b)
}

func (s *failing) Rebind(rules []core.StoreRule) (core.Bound, error) {
	if s.fault != nil {
		return nil, s.fault
	}
	return s.Bound.Rebind(rules)
}

func TestAFailingSharedStoreChargesNothingLocally(t *testing.T) {
	fault := errors.New("gone")
	clock := storetest.NewClock(time.Unix(1_700_000_000, 0))
	store := twoPlaces(t, clock.Now)
	shared := &failing{Store: store.(*places).shared}
	store.(*places).shared = shared
	bound, err := store.Bind("l", []core.StoreRule{
		{Name: "even", Limits: []core.Limit{{Name: "even", Quota: 5, Window: time.Minute}}},
		{Name: "odd", Limits: []core.Limit{{Name: "odd", Quota: 5, Window: time.Minute}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	shared.fault = fault
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the client has gone, too
	if err := bound.Take(ctx, one(false)); !errors.Is(err, fault) {
		t.Errorf("the error is %v, want %v", err, fault)
	}
	shared.fault = nil
	b := one(true)
	if err := bound.Take(t.Context(), b); err != nil || b.Items[0].Results[0].Remaining != 5 {
		t.Errorf("%d left locally (%v), want 5", b.Items[0].Results[0].Remaining, err)
	}
}

// A slot that the local store has given is free again if the shared store denies the request.
func TestASlotThatTheSharedStoreDeniesIsFreeAgain(t *testing.T) {
	bound, err := twoPlaces(t, nil).Bind("l", []core.StoreRule{
		{Name: "even", Limits: []core.Limit{{Name: "even", Quota: 5, Window: time.Minute, Algorithm: core.Leases}}},
		{Name: "odd", Limits: []core.Limit{{Name: "odd", Quota: 2, Window: time.Hour}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		b := one(false)
		b.Items[0].Lease = uint64(i + 1)
		if err := bound.Take(t.Context(), b); err != nil || b.Allowed != (i < 2) {
			t.Fatalf("take %d: allowed %v, %v", i+1, b.Allowed, err)
		}
		if left, want := b.Items[0].Results[0].Remaining, int64(max(3, 4-i)); left != want {
			t.Errorf("take %d: %d slots left, want %d", i+1, left, want)
		}
	}
}

// An error that says that nothing was charged is true of both places. After another
// error the local counters have the charge: it may have been made in the shared store.
func TestAChargeThatTheSharedStoreRefuses(t *testing.T) {
	for fault, want := range map[error]int64{core.ErrNotCharged: 5, errors.New("no answer"): 4, nil: 4} {
		store := twoPlaces(t, nil)
		shared := &failing{Store: store.(*places).shared}
		store.(*places).shared = shared
		bound, err := store.Bind("l", []core.StoreRule{
			{Name: "even", Limits: []core.Limit{{Name: "even", Quota: 5, Window: time.Minute}}},
			{Name: "odd", Limits: []core.Limit{{Name: "odd", Quota: 5, Window: time.Minute}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		shared.fault = fault
		if err := bound.Charge(t.Context(), one(false)); !errors.Is(err, fault) {
			t.Errorf("the error is %v, want %v", err, fault)
		}
		shared.fault = nil
		b := one(true)
		if err := bound.Take(t.Context(), b); err != nil || b.Items[0].Results[0].Remaining != want {
			t.Errorf("after %v: %d left locally (%v), want %d", fault, b.Items[0].Results[0].Remaining, err, want)
		}
	}
}

func TestPlacesPromiseWhatBothPromise(t *testing.T) {
	if got, want := core.Must(core.TraitsOf(twoPlaces(t, time.Now))), (core.Traits{Exact: true, NeverOpens: true, Closes: true, KeepsDeadline: true, FailsFast: true, Private: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	p := twoPlaces(t, time.Now).(*places)
	p.shared = &failing{Store: p.shared} // says nothing
	if got := core.Must(core.TraitsOf(p)); got != (core.Traits{}) {
		t.Errorf("with a store that promises nothing: %+v", got)
	}
}
