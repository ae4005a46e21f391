package denycache_test

import (
	"context"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

// A denial from memory clears the results of the items that nobody has looked at,
// whatever the caller's buffer had before, and marks them; of the others it does
// neither.
func TestResultsThatNobodyLookedAtAreClearedAndMarked(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.PerMinute(1)))
	f.take(f.item(0, "k", 1))
	f.take(f.item(0, "k", 1)) // denied, and remembered
	junk := core.Result{Allowed: true, Remaining: 77, ResetAfter: time.Hour, MoreAfter: time.Hour, RetryAfter: time.Hour}
	other, k := f.item(0, "other", 1), f.item(0, "k", 1)
	other.Results[0], k.Results[0] = junk, junk
	if n := f.asked(func() {
		b := f.take(other, k)
		if got := b.Items[0]; b.Allowed || !got.Unknown || got.Results[0] != (core.Result{}) {
			t.Errorf("the other key: allowed %v, unknown %v, %+v", b.Allowed, got.Unknown, got.Results[0])
		}
		if got := b.Items[1]; got.Unknown || got.Results[0].RetryAfter <= 0 || got.Results[0].Remaining != 0 {
			t.Errorf("the denied key: unknown %v, %+v", got.Unknown, got.Results[0])
		}
	}); n != 0 {
		t.Errorf("the store was asked %d times", n)
	}
}

// unlooked is a store that denies every batch, and says of all items but the last
// that it has not looked at them.
type unlooked struct{ core.Bound }

func (unlooked) Take(_ context.Context, b *core.Batch) error {
	b.Allowed = false
	for i := range b.Items {
		it := &b.Items[i]
		it.Unknown = i < len(b.Items)-1
		it.Results[0] = core.Result{RetryAfter: time.Minute, ResetAfter: time.Minute}
	}
	return nil
}

type oneStep struct{ fixed }

func (oneStep) Traits() core.Traits { return core.Traits{OneStep: true} }

// What the other store has not looked at is not remembered as denied, whatever
// its results are.
func TestItemsThatTheStoreHasNotLookedAtAreNotRemembered(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.PerMinute(1)))
	store := core.Must(denycache.New(oneStep{fixed{unlooked{f.bound}}}, denycache.Config{Clock: f.clock.Now}))
	b, err := store.Bind("x", f.rules)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Take(t.Context(), &core.Batch{Items: []core.Item{f.item(0, "first", 1), f.item(0, "last", 1)}}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]uint64{"first": 0, "last": 1} {
		before := store.Refused()
		if err := b.Take(t.Context(), &core.Batch{Items: []core.Item{f.item(0, key, 1), f.item(0, "last of this batch", 1)}}); err != nil {
			t.Fatal(err)
		}
		if got := store.Refused() - before; got != want {
			t.Errorf("%s: %d denials from memory, want %d", key, got, want)
		}
	}
}

// A charge of a key ends the denials of other costs, also one that the store is
// just about to report: it was made before the charge.
func TestADenialFromBeforeAChargeIsNotRemembered(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.Limit{Quota: 10, Window: time.Minute, Algorithm: core.SlidingLog}))
	f.take(f.item(0, "k", 5))
	if f.take(f.item(0, "k", 9)).Allowed { // denied, and remembered
		t.Fatal("not over the limit")
	}
	late := &charging{Bound: f.bound}
	store := core.Must(denycache.New(fixed{late}, denycache.Config{Clock: f.clock.Now}))
	b, err := store.Bind("x", f.rules)
	if err != nil {
		t.Fatal(err)
	}
	take := func(cost int64) *core.Batch {
		batch := &core.Batch{Items: []core.Item{f.item(0, "k", cost)}}
		if err := b.Take(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		return batch
	}
	take(9) // remembered by the outer cache too
	late.meanwhile = func() {
		if !take(1).Allowed {
			t.Error("what fits is denied")
		}
	}
	if take(7).Allowed {
		t.Fatal("not over the limit")
	}
	if late.asked = 0; take(7).Allowed || late.asked != 1 {
		t.Errorf("a denial from before a charge is remembered: the store was asked %d times", late.asked)
	}
}

// charging lets something happen once, between deciding and answering.
type charging struct {
	core.Bound
	asked     int
	meanwhile func()
}

func (c *charging) Take(ctx context.Context, batch *core.Batch) error {
	c.asked++
	err := c.Bound.Take(ctx, batch)
	if f := c.meanwhile; f != nil {
		c.meanwhile = nil
		f()
	}
	return err
}

// The wait that is remembered begins before the store was asked: however long the
// answer takes, the key is admitted when the wait is over.
func TestARememberedWaitIsNoLongerThanTheStores(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.Limit{Quota: 1, Window: 500 * time.Millisecond, Algorithm: core.FixedWindow}))
	f.take(f.item(0, "k", 1))
	late := &charging{Bound: f.bound, meanwhile: func() { f.clock.Advance(300 * time.Millisecond) }}
	store := core.Must(denycache.New(fixed{late}, denycache.Config{Clock: f.clock.Now}))
	b, err := store.Bind("x", f.rules)
	if err != nil {
		t.Fatal(err)
	}
	batch := &core.Batch{Items: []core.Item{f.item(0, "k", 1)}}
	if err := b.Take(t.Context(), batch); err != nil || batch.Allowed {
		t.Fatalf("allowed %v, error %v", batch.Allowed, err)
	}
	f.clock.Advance(200 * time.Millisecond)
	if err := b.Take(t.Context(), batch); err != nil || !batch.Allowed {
		t.Errorf("denied when the wait was over: %+v, %v", batch.Items[0].Results, err)
	}
}

// What is remembered does not change with the caller's results.
func TestRememberedResultsAreCopies(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.PerMinute(1)))
	f.take(f.item(0, "k", 1))
	denied := f.take(f.item(0, "k", 1))
	want := denied.Items[0].Results[0]
	denied.Items[0].Results[0] = core.Result{Allowed: true, Remaining: 77}
	if got := f.take(f.item(0, "k", 1)).Items[0].Results[0]; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
