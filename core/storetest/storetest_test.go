package storetest_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
)

// The store of package core is tested here, and not beside their code: what
// the tests of core import, everybody who imports core has in their go.sum.

func newMemory(t testing.TB, clock func() time.Time) core.Store {
	m, err := core.NewMemory(core.MemoryConfig{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestVectors(t *testing.T) {
	t.Run("Memory", func(t *testing.T) { storetest.Vectors(t, newMemory) })
}

func TestOperations(t *testing.T) {
	t.Run("Memory", func(t *testing.T) { storetest.Operations(t, newMemory) })
}

func TestConformance(t *testing.T) {
	t.Run("Memory", func(t *testing.T) { storetest.Run(t, newMemory) })
}
