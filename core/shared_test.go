package core_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// shared is a Memory that says that other processes count in it.
type shared struct{ *core.Memory }

func newShared(t testing.TB) shared {
	t.Helper()
	m, err := core.NewMemory(core.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return shared{m}
}

func (shared) Guarantees() core.Guarantees {
	return core.Guarantees{Ops: core.AllOps, Exact: true, Shared: true}
}
