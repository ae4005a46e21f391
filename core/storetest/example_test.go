package storetest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
)

// A store's own test file has these two tests.
func Example() {
	newStore := func(_ testing.TB, clock func() time.Time) core.Store {
		return core.Must(core.NewMemory(core.MemoryConfig{Clock: clock}))
	}
	tests := []func(t *testing.T){
		func(t *testing.T) { storetest.Vectors(t, newStore) }, // TestVectors
		func(t *testing.T) { storetest.Run(t, newStore) },     // TestConformance
	}
	fmt.Println(len(tests), "tests")
	// Output: 2 tests
}

// A store that takes several keys one by one passes GivesBack.
func ExampleGivesBack() {
	_ = func(t *testing.T, newStore storetest.Factory) {
		storetest.Run(t, newStore, storetest.GivesBack(), storetest.KeepsTime())
	}
}

func ExampleClock() {
	clock := storetest.NewClock(time.Unix(1_700_000_000, 0))
	clock.Advance(1500 * time.Millisecond)
	fmt.Println(clock.Now().UnixMilli())
	// Output: 1700000001500
}

// A store that is shared gives the suite two instances that count together, and
// a function that cuts off their backend.
func ExampleGuarantees() {
	_ = func(t *testing.T, connect func() core.Store, cut func()) {
		promised := core.Guarantees{Ops: core.AllOps, Exact: true, OneStep: true, Shared: true, KeepsDeadline: true, FailsFast: true, OnFailure: core.FailClosed}
		storetest.Guarantees(t, promised, func(testing.TB) storetest.Instances {
			return storetest.Instances{Stores: []core.Store{connect(), connect()}, Gone: cut}
		})
	}
}

// Stores on one server are tested together, with a clock each.
func ExampleShared() {
	_ = func(t *testing.T, open func(clock func() time.Time) core.Store) {
		storetest.Shared(t, func(_ testing.TB, clocks ...func() time.Time) (stores []core.Store) {
			for _, clock := range clocks {
				stores = append(stores, open(clock))
			}
			return stores
		})
	}
}

// Takes, refunds and resets with all their results, from a plain model.
func ExampleOperations() {
	_ = func(t *testing.T, newStore storetest.Factory) { storetest.Operations(t, newStore) }
}
