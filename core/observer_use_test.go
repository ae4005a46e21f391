package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/racetest"
)

// fixed is a store that cannot count other rules than those it has.
type fixed struct {
	core.Store
	core.Counters
}

var errFixed = errors.New("no other rules")

func (s *fixed) Open(limiter string, rules []core.StoreRule) (_ core.Counters, err error) {
	s.Counters, err = s.Store.Open(limiter, rules)
	return s, err
}

func (*fixed) Reopen([]core.StoreRule) (core.Counters, error) { return nil, errFixed }

// An observer is not told of rules that do not come into force.
func TestObserverIsNotToldOfRulesThatTheStoreCannotServe(t *testing.T) {
	w := new(watcher)
	config := core.Config{
		Name: "l", Store: &fixed{Store: core.Must(core.NewMemory(core.MemoryConfig{}))}, Observer: w,
		Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}},
	}
	l := newLimiter(t, config, nil)
	config.Rules = []core.Rule{{Name: "other", Key: static("k"), Limits: []core.Limit{core.PerMinute(2)}}}
	if err := l.Reconfigure(config); !errors.Is(err, errFixed) {
		t.Error(err)
	}
	config.Rules = []core.Rule{{Name: "bad", Key: static("k"), Limits: []core.Limit{core.PerMinute(-2)}}}
	if err := l.Reconfigure(config); !errors.Is(err, core.ErrConfig) {
		t.Error(err)
	}
	if len(w.bound) != 1 {
		t.Errorf("the observer was told of %q", w.bound)
	}
}

// An observer that comes with Reconfigure is told of decisions and of the store.
func TestObserverThatComesWithReconfigure(t *testing.T) {
	w := new(watcher)
	store := covered()
	config := core.Config{Name: "l", Store: store, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}}
	l := newLimiter(t, config, nil)
	config.Observer = w
	if err := l.Reconfigure(config); err != nil {
		t.Fatal(err)
	}
	l.Allow(t.Context(), core.Hit{Rule: "r", Key: "k"})
	if len(w.seen) != 1 || len(w.stored) != 1 {
		t.Errorf("%d decisions and %q are observed", len(w.seen), w.stored)
	}
}

type namedObserver struct{ name string }

func (o *namedObserver) Observe(string, []core.Rule) core.ObserverFuncs {
	_ = len(o.name)
	return core.ObserverFuncs{}
}

// A nil pointer as Observer is called by its name, and not by the panic to which it leads.
func TestObserverThatIsANilPointer(t *testing.T) {
	_, err := core.New(core.Config{
		Observer: (*namedObserver)(nil),
		Rules:    []core.Rule{{Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}},
	})
	if !errors.Is(err, core.ErrConfig) || !strings.HasSuffix(err.Error(), "Observer: *core_test.namedObserver: is nil: must be an observer, or leave Observer out") {
		t.Error(err)
	}
}

// The functions of an observer may use the limiter: no lock is held.
func TestObserverAsksTheLimiter(t *testing.T) {
	var l *core.Limiter
	left := int64(-1)
	asks := observeFunc(func(string, []core.Rule) core.ObserverFuncs {
		return core.ObserverFuncs{Keys: true, Decided: func(ctx context.Context, o core.Observation) {
			d, _ := l.Peek(ctx, 0, core.Hit{Rule: "r", Key: o.Key, Extra: o.Extra})
			left = d.Remaining
		}}
	})
	extra := core.HookFuncs{KeyExtraFunc: func(core.Request) (string, error) { return "x", nil }}
	l = newLimiter(t, core.Config{Observer: asks, Hooks: extra, Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(3)}}}}, nil)
	l.Check(&request{})
	if left != 2 {
		t.Errorf("the observer has seen that %d are left, want 2", left)
	}
}

func TestObserverAllocatesNothing(t *testing.T) {
	if racetest.Enabled {
		t.Skip("with -race, sync.Pool drops values on purpose: make allocations runs this without -race")
	}
	n := 0
	counts := observeFunc(func(string, []core.Rule) core.ObserverFuncs {
		return core.ObserverFuncs{Keys: true, Decided: func(_ context.Context, o core.Observation) { n += len(o.Key) }}
	})
	l := newLimiter(t, core.Config{Observer: counts, Rules: []core.Rule{
		{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(1_000_000)}}, {Name: "none", Limits: []core.Limit{core.PerHour(1)}},
	}}, nil)
	r, ctx, hit := &request{}, context.Background(), core.Hit{Rule: "r", Key: "k"}
	for name, f := range map[string]func(){
		"Allow":           func() { l.Allow(ctx, hit) },
		"Take":            func() { _, _ = l.Take(ctx, 1, hit) },
		"Take, denied":    func() { _, _ = l.Take(ctx, 2, core.Hit{Rule: "none", Key: "k"}) },
		"Check":           func() { l.Check(r) },
		"Take, of 2 hits": func() { _ = l.Allow(ctx, hit, hit) },
	} {
		if got := testing.AllocsPerRun(1000, f); got > 0 {
			t.Errorf("%s: %v allocations with an observer", name, got)
		}
	}
	if n == 0 {
		t.Error("nothing was observed")
	}
}

// covered returns a store that a limiter does not know for a Memory.
func covered() core.Store {
	return &around{core.Must(core.NewMemory(core.MemoryConfig{})), func(ctx context.Context, c core.Counters, b *core.Batch) error {
		return c.Do(ctx, b)
	}}
}
