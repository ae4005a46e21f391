package core_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

type (
	embeds   struct{ core.Store }
	deeper   struct{ embeds }
	concrete struct{ *core.Memory }
	ownBind  struct{ core.Store }
	ownPtr   struct{ core.Store }
	mapStore map[string]int
	funcs    func(string, []core.StoreRule) (core.Bound, error)
	slice    []int
	channel  chan int
)

func (ownBind) Bind(string, []core.StoreRule) (core.Bound, error)  { return nil, errors.New("mine") }
func (*ownPtr) Bind(string, []core.StoreRule) (core.Bound, error)  { return nil, errors.New("mine") }
func (mapStore) Bind(string, []core.StoreRule) (core.Bound, error) { return nil, errors.New("mine") }
func (slice) Bind(string, []core.StoreRule) (core.Bound, error)    { return nil, errors.New("mine") }
func (channel) Bind(string, []core.StoreRule) (core.Bound, error)  { return nil, errors.New("mine") }
func (f funcs) Bind(l string, r []core.StoreRule) (core.Bound, error) {
	return f(l, r)
}

func TestAStoreWithoutTraitsPromisesNothing(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	if got, err := core.TraitsOf(memory); err != nil || !got.Exact || !got.NeverOpens || !got.Closes || !got.KeepsDeadline || !got.FailsFast || !got.Private || !got.OneStep {
		t.Errorf("Memory: %+v", got)
	}
	for name, s := range map[string]core.Store{
		"nil": nil, "a nil Memory": (*core.Memory)(nil), "embeds the interface": embeds{memory}, "own Bind": ownBind{memory},
		"embeds a nil Memory": concrete{},
	} {
		if got, _ := core.TraitsOf(s); got != (core.Traits{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if core.Must(core.TraitsOf(concrete{memory})) != memory.Traits() {
		t.Error("a struct that embeds a Memory does not say what a Memory says")
	}
}

func TestANilStoreIsAConfigurationError(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	rules := []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}
	for name, s := range map[string]core.Store{
		"*core.Memory": (*core.Memory)(nil), "mapStore": mapStore(nil), "funcs": funcs(nil), "slice": slice(nil), "channel": channel(nil),
		"embedded Store": embeds{}, "embedded embeds.Store": deeper{}, "embedded Memory": concrete{}, "*core_test.embeds": (*embeds)(nil),
		"the embedded Store is nil": &embeds{}, "core_test.embeds: the embedded Store": embeds{(*core.Memory)(nil)},
		"core_test.embeds: the embedded Store.Store": embeds{embeds{}},
	} {
		if _, err := core.TraitsOf(s); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("TraitsOf %s: %v", name, err)
		}
		if _, err := core.New(core.Config{Name: "l", Rules: rules, Store: s}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("New with %s: %v", name, err)
		}
	}
	if _, err := core.TraitsOf(nil); !errors.Is(err, core.ErrConfig) {
		t.Errorf("nil: %v", err)
	}
	for name, s := range map[string]core.Store{
		"Memory": memory, "embeds": embeds{memory}, "a pointer": &embeds{memory}, "deeper": deeper{embeds{memory}}, "concrete": concrete{memory},
		"own Bind": ownBind{}, "a pointer with own Bind": &ownBind{}, "own Bind of the pointer": &ownPtr{}, "map": mapStore{},
		"function": funcs(func(string, []core.StoreRule) (core.Bound, error) { return nil, nil }), "around one with its own Bind": embeds{ownBind{}},
	} {
		if _, err := core.TraitsOf(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASharedStoreNeedsAName(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	rules := []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}
	shared := embeds{memory} // it says nothing, and so may be shared
	if _, err := core.New(core.Config{Rules: rules, Store: shared}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `Name: ""`) {
		t.Errorf("no name: %v", err)
	}
	_, err := core.New(core.Config{Store: shared})
	if err == nil || !strings.Contains(err.Error(), `Name: ""`) || !strings.Contains(err.Error(), "Rules: 0") {
		t.Errorf("not everything that is wrong is reported: %v", err)
	}
	l, err := core.New(core.Config{Name: "named", Rules: rules, Store: shared})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Reconfigure(core.Config{Rules: rules, Store: shared}); err != nil {
		t.Errorf("a Reconfigure without a name: %v", err)
	}
	if l, err := core.New(core.Config{Rules: rules, Store: memory}); err != nil || l.Name() != "default" {
		t.Errorf("a private store: %v", err)
	}
}
