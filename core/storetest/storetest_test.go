package storetest_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
)

func newMemory(t testing.TB, clock func() time.Time) core.Store {
	m, err := core.NewMemory(core.MemoryConfig{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestVectors(t *testing.T) { storetest.Vectors(t, newMemory) }

func TestConformance(t *testing.T) { storetest.Run(t, newMemory) }
