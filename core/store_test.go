package core_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

type (
	embeds   struct{ core.Store }
	mapStore map[string]int
)

func (mapStore) Open(string, []core.StoreRule) (core.Counters, error) { return nil, errors.New("mine") }
func (mapStore) Guarantees() core.Guarantees                          { return core.Guarantees{} }

func TestANilStoreIsAConfigurationError(t *testing.T) {
	rules := []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}
	for name, s := range map[string]core.Store{
		"*core.Memory": (*core.Memory)(nil), "mapStore": mapStore(nil), "*core_test.embeds": (*embeds)(nil),
	} {
		if _, err := core.New(core.Config{Name: "l", Rules: rules, Store: s}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), name+": is nil") {
			t.Errorf("New with %s: %v", name, err)
		}
	}
}

func TestASharedStoreNeedsAName(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	rules := []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}
	store := newShared(t)
	if _, err := core.New(core.Config{Rules: rules, Store: store}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `Name: ""`) {
		t.Errorf("no name: %v", err)
	}
	_, err := core.New(core.Config{Store: store})
	if err == nil || !strings.Contains(err.Error(), `Name: ""`) || !strings.Contains(err.Error(), "Rules: 0") {
		t.Errorf("not everything that is wrong is reported: %v", err)
	}
	l, err := core.New(core.Config{Name: "named", Rules: rules, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Reconfigure(core.Config{Rules: rules, Store: store}); err != nil {
		t.Errorf("a Reconfigure without a name: %v", err)
	}
	if l, err := core.New(core.Config{Rules: rules, Store: memory}); err != nil || l.Name() != "default" {
		t.Errorf("a store that is not shared: %v", err)
	}
}

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
