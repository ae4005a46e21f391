package denycache_test

import (
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

// servers is a store that says where its keys are, and what it promises.
type servers struct{ fixed }

func (servers) Traits() core.Traits {
	return core.Traits{Exact: true, NeverOpens: true, FailsFast: true}
}

// placed is a Bound of servers.
type placed struct {
	core.Bound
	beside error
}

func (placed) ServerOf(rule int, key []byte) string { return string(key) + string(rune('0'+rule)) }

func (p placed) Beside([]core.StoreRule) (core.Bound, error) { return p, p.beside }

// What the other store says of its servers, of a Bound beside and of its promises is passed on.
func TestWhatTheOtherStoreSaysIsPassedOn(t *testing.T) {
	broken := errors.New("the server is gone")
	for _, want := range []error{nil, broken} {
		store, err := denycache.New(servers{fixed{placed{beside: want}}}, denycache.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := store.Bind("l", []core.StoreRule{hourly(1)})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.(interface{ ServerOf(int, []byte) string }).ServerOf(1, []byte("k")); got != "k1" {
			t.Errorf("the server of k is %q, want k1", got)
		}
		beside, err := b.(interface {
			Beside([]core.StoreRule) (core.Bound, error)
		}).Beside(nil)
		if beside != (placed{beside: want}) || !errors.Is(err, want) {
			t.Errorf("the Bound beside is %v, %v, want that of the store and %v", beside, err, want)
		}
		if got := store.Traits(); got != (servers{}).Traits() {
			t.Errorf("the promises are %+v, want %+v", got, servers{}.Traits())
		}
	}
}

func slots(n int64) core.StoreRule {
	return rule(core.Limit{Quota: n, Window: time.Minute, Algorithm: core.Leases})
}

// A store that cannot count leases is not given a limit of them.
func TestAStoreWithoutLeasesIsNotGivenOne(t *testing.T) {
	store, err := denycache.New(fixed{placed{}}, denycache.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := store.Bind("l", []core.StoreRule{slots(1)}); err == nil {
		t.Errorf("it is given one: %v", b)
	}
}

// Other rules of a limiter decide anew which denials are remembered: none of a slot, which may be
// free at any time.
func TestNewRulesSayWhatIsRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		before, after core.StoreRule
		remembered    bool
	}{
		"slots after a window": {hourly(1), slots(1), false},
		"a window after slots": {slots(1), hourly(1), true},
	} {
		clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
		memory, err := core.NewMemory(core.MemoryConfig{Clock: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		store, err := denycache.New(memory, denycache.Config{Clock: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		b, err := store.Bind("l", []core.StoreRule{c.before})
		if err != nil {
			t.Fatal(err)
		}
		if b, err = b.Rebind([]core.StoreRule{c.after}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			batch := &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 1, Lease: uint64(i + 1), Results: make([]core.Result, 1)}}}
			if err := b.Take(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			if want := c.remembered && i == 2; batch.Allowed != (i == 0) || batch.Recalled != want {
				t.Errorf("%s: take %d is allowed: %t, recalled: %t, want recalled %t", name, i, batch.Allowed, batch.Recalled, want)
			}
		}
	}
}

// A look that the store admits shows that another process has reset the key.
func TestALookHearsOfAResetToo(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	f.take(f.item(0, "k", 1))
	f.take(f.item(0, "k", 1))
	if err := f.inner.Store.(resets).reset("k"); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(950 * time.Millisecond)
	look := &core.Batch{Items: []core.Item{f.item(0, "k", 1)}, Peek: true}
	if err := f.bound.Take(t.Context(), look); err != nil || !look.Allowed {
		t.Fatalf("a look after the reset is allowed: %t, %v", look.Allowed, err)
	}
	if !f.take(f.item(0, "k", 1)).Allowed {
		t.Error("a take after the look is denied")
	}
}

// A batch is used again: it is recalled only if this take was.
func TestABatchThatIsUsedAgainIsNotRecalled(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	f.take(f.item(0, "k", 1))
	f.take(f.item(0, "k", 1))
	batch := f.take(f.item(0, "k", 1))
	if !batch.Recalled {
		t.Fatal("a denial is not recalled")
	}
	batch.Items = []core.Item{f.item(0, "other", 1)}
	if err := f.bound.Take(t.Context(), batch); err != nil || !batch.Allowed || batch.Recalled {
		t.Errorf("allowed %t, recalled %t, %v, want it allowed and not recalled", batch.Allowed, batch.Recalled, err)
	}
}
