package swapstore_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

func TestVectors(t *testing.T) { storetest.Vectors(t, newSwapStore) }

func TestOperations(t *testing.T) { storetest.Operations(t, newSwapStore) }

func TestConformance(t *testing.T) { storetest.Run(t, newSwapStore, storetest.GivesBack()) }

func TestGuarantees(t *testing.T) {
	storetest.Guarantees(t, core.Guarantees{Ops: core.AllOps &^ core.OpResetAll, Exact: true, Shared: true, OnFailure: core.FailClosed}, func(testing.TB) storetest.Instances {
		swapper := newMapSwapper()
		store := func() core.Store { return core.Must(swapstore.New(swapper, swapstore.Config{Attempts: 100_000})) }
		return storetest.Instances{Stores: []core.Store{store(), store()}}
	})
}
