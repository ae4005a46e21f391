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
		m := core.Must(core.NewMemory(core.MemoryConfig{Clock: clock}))
		t.Cleanup(func() { _ = m.Close() })
		*to = m
	}
	return p
}

func TestTwoPlacesAreAStore(t *testing.T) {
	storetest.Run(t, twoPlaces, storetest.GivesBack())
}

func TestTwoPlacesDoOperations(t *testing.T) { storetest.Operations(t, twoPlaces) }

// evenAndOdd are a rule that counts locally and one that counts in the shared store.
func evenAndOdd(even, odd int64) []core.StoreRule {
	return []core.StoreRule{
		{Name: "even", Limits: []core.Limit{{Name: "even", Quota: even, Window: time.Minute}}},
		{Name: "odd", Limits: []core.Limit{{Name: "odd", Quota: odd, Window: time.Minute}}},
	}
}

// one returns a batch for the rules 0, which counts locally, and 1.
func one() *core.Batch {
	b := &core.Batch{}
	for rule := range 2 {
		b.Items = append(b.Items, core.Item{Rule: rule, Key: []byte("k"), Cost: 1, Results: make([]core.Result, 1)})
	}
	return b
}

func TestWhatTheSharedStoreDeniesIsGivenBackLocally(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_700_000_000, 0))
	bound := core.Must(twoPlaces(t, clock.Now).Open("l", evenAndOdd(5, 2)))
	for i := range 5 {
		b := one()
		if err := storetest.Do(t.Context(), bound, core.OpTake, b); err != nil {
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
		b := one()
		if err := storetest.Do(t.Context(), bound, core.OpPeek, b); err != nil || b.Allowed || b.Items[0].Results[0].Remaining != 3 {
			t.Errorf("look %d: allowed %v, %d left locally, want 3: it has charged nothing (%v)", i+1, b.Allowed, b.Items[0].Results[0].Remaining, err)
		}
	}
}

// needsItems fails the test if it is given a batch without items.
type needsItems struct {
	core.Counters
	t testing.TB
}

func (c needsItems) Do(ctx context.Context, batch *core.Batch) error {
	c.t.Helper()
	if len(batch.Items) == 0 {
		c.t.Error("a store is asked about no key")
	}
	return c.Counters.Do(ctx, batch)
}

// A store is not asked about a batch of which it has no key: that would be a round
// trip, or a failure of what the operation does not need.
func TestAStoreWithoutAKeyOfTheBatchIsNotAsked(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_700_000_000, 0))
	rules := evenAndOdd(1, 1)
	bound := core.Must(twoPlaces(t, clock.Now).Open("l", rules))
	b := bound.(*placesCounters)
	b.local, b.shared = needsItems{b.local, t}, needsItems{b.shared, t}
	for rule := range rules {
		for _, allowed := range []bool{true, false} {
			batch := one()
			batch.Items = batch.Items[rule : rule+1]
			if err := storetest.Do(t.Context(), bound, core.OpTake, batch); err != nil || batch.Allowed != allowed {
				t.Errorf("rule %d: allowed %v, %v; want %v", rule, batch.Allowed, err, allowed)
			}
		}
		for _, op := range []core.Op{core.OpRefund, core.OpReset} {
			batch := one()
			batch.Items = batch.Items[rule : rule+1]
			if err := storetest.Do(t.Context(), bound, op, batch); err != nil {
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
	bound := core.Must(store.Open("l", evenAndOdd(1, 9)))
	for i := range 3 {
		b := one()
		if err := storetest.Do(t.Context(), bound, core.OpTake, b); err != nil || b.Allowed != (i == 0) || b.Items[1].Unknown != (i > 0) {
			t.Errorf("take %d: %v, allowed %v, the other item unknown %v", i+1, err, b.Allowed, b.Items[1].Unknown)
		}
	}
	if len(asked.asked) != 1 {
		t.Errorf("the shared store was asked %d times, want once", len(asked.asked))
	}
}

// failing is a store that notes what it is asked, and fails if fault is set.
type failing struct {
	core.Store
	core.Counters
	asked []core.Batch
	fault error
	gone  func() // is called before it fails; nil: nothing is
}

func (s *failing) Open(limiter string, rules []core.StoreRule) (_ core.Counters, err error) {
	s.Counters, err = s.Store.Open(limiter, rules)
	return s, err
}

func (s *failing) Do(ctx context.Context, b *core.Batch) error {
	s.asked = append(s.asked, *b)
	if s.fault != nil {
		if s.gone != nil {
			s.gone()
		}
		return s.fault
	}
	return s.Counters.Do(ctx, b)
}

// impatient are counters that do nothing for a client that has gone.
type impatient struct{ core.Counters }

func (c impatient) Do(ctx context.Context, b *core.Batch) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.Counters.Do(ctx, b)
}

func TestAFailingSharedStoreChargesNothingLocally(t *testing.T) {
	fault := errors.New("gone")
	clock := storetest.NewClock(time.Unix(1_700_000_000, 0))
	store := twoPlaces(t, clock.Now)
	shared := &failing{Store: store.(*places).shared}
	store.(*places).shared = shared
	bound := core.Must(store.Open("l", evenAndOdd(5, 5)))
	ctx, cancel := context.WithCancel(t.Context())
	shared.fault, shared.gone = fault, cancel // the client goes, too
	bound.(*placesCounters).local = impatient{bound.(*placesCounters).local}
	if err := storetest.Do(ctx, bound, core.OpTake, one()); !errors.Is(err, fault) {
		t.Errorf("the error is %v, want %v", err, fault)
	}
	shared.fault = nil
	b := one()
	if err := storetest.Do(t.Context(), bound, core.OpPeek, b); err != nil || b.Items[0].Results[0].Remaining != 5 {
		t.Errorf("%d left locally (%v), want 5", b.Items[0].Results[0].Remaining, err)
	}
	shared.fault = fault
	if err := bound.Do(t.Context(), &core.Batch{Op: core.OpResetAll}); !errors.Is(err, fault) {
		t.Errorf("the error of ResetAll is %v, want %v", err, fault)
	}
}

// An error that says that nothing was charged is true of both places. After another
// error the local counters have the charge: it may have been made in the shared store.
func TestAChargeThatTheSharedStoreRefuses(t *testing.T) {
	for fault, want := range map[error]int64{core.ErrNotCharged: 5, errors.New("no answer"): 4, nil: 4} {
		store := twoPlaces(t, nil)
		shared := &failing{Store: store.(*places).shared}
		store.(*places).shared = shared
		bound := core.Must(store.Open("l", evenAndOdd(5, 5)))
		shared.fault = fault
		if err := storetest.Do(t.Context(), bound, core.OpCharge, one()); !errors.Is(err, fault) {
			t.Errorf("the error is %v, want %v", err, fault)
		}
		shared.fault = nil
		b := one()
		if err := storetest.Do(t.Context(), bound, core.OpPeek, b); err != nil || b.Items[0].Results[0].Remaining != want {
			t.Errorf("after %v: %d left locally (%v), want %d", fault, b.Items[0].Results[0].Remaining, err, want)
		}
	}
}

// weak is a store that promises nothing.
type weak struct{ core.Store }

func (weak) Guarantees() core.Guarantees { return core.Guarantees{} }

func TestPlacesPromiseWhatBothPromise(t *testing.T) {
	p := twoPlaces(t, time.Now).(*places)
	want := p.local.Guarantees()
	want.OneStep = false
	if got := p.Guarantees(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	p.shared = weak{p.shared}
	if got, want := p.Guarantees(), (core.Guarantees{}); got != want {
		t.Errorf("with a store that promises nothing: %+v, want %+v", got, want)
	}
}

// A store must know which decisions were made without its server: it has not charged their hits.
func TestAStoreLearnsThatADecisionWasDegraded(t *testing.T) {
	p := twoPlaces(t, nil).(*places)
	shared := &failing{Store: p.shared}
	p.shared = shared
	bound := core.Must(p.Open("l", evenAndOdd(5, 5)))
	for i, degraded := range []bool{true, false} {
		b := one()
		b.Degraded = degraded
		if err := storetest.Do(t.Context(), bound, core.OpRefund, b); err != nil {
			t.Fatal(err)
		}
		if got := shared.asked[i].Degraded; got != degraded {
			t.Errorf("refund %d: degraded %v, want %v", i+1, got, degraded)
		}
	}
}
