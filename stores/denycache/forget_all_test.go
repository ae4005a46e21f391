package denycache_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

// forgetter can forget all keys, of a store that cannot.
type forgetter struct{ core.Store }

type forgetterBound struct{ core.Bound }

func (forgetterBound) ResetAll(context.Context) error { return nil }

func (f forgetter) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := f.Store.Bind(limiter, rules)
	return forgetterBound{b}, err
}

// A reset of all keys forgets the denials of all of them, also one that is on its way.
func TestAResetOfAllForgetsEveryDenial(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	store := core.Must(denycache.New(forgetter{f.inner}, denycache.Config{Clock: f.clock.Now}))
	var err error
	if f.bound, err = store.Bind("other", f.rules); err != nil {
		t.Fatal(err)
	}
	resetAll := func() {
		if err := f.bound.(core.ResetterOfAll).ResetAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const keys = 1000
	all := func() {
		for i := range keys {
			f.take(f.item(0, fmt.Sprint(i), 1))
		}
	}
	all()
	all() // denied, and remembered
	resetAll()
	if n := f.asked(all); n != keys {
		t.Errorf("the store is asked for %d of %d keys", n, keys)
	}
	f.take(f.item(0, "k", 1))
	f.inner.after = func() { f.inner.after = nil; resetAll() }
	f.take(f.item(0, "k", 1))
	if n := f.asked(func() { f.take(f.item(0, "k", 1)) }); n != 1 {
		t.Error("a denial from before the reset is remembered")
	}
}

// What is remembered does not change with the caller's quotas.
func TestRememberedQuotasAreCopies(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(3))
	f.take(f.item(0, "k", 3))
	quotas := []int64{2}
	f.take(with(f.item(0, "k", 1), quotas...))
	quotas[0] = 9
	if !f.take(with(f.item(0, "k", 1), 9)).Allowed {
		t.Error("denied from what was remembered under another quota")
	}
}
