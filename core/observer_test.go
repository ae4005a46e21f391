package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/internal/racetest"
)

// watcher is an Observer that keeps what it is told.
type watcher struct {
	mu       sync.Mutex
	keys     bool
	bound    []string
	seen     []core.Observation
	stored   []string
	reported []string
}

func (w *watcher) Observe(limiter string, rules []core.Rule) core.ObserverFuncs {
	text := limiter
	for _, r := range rules {
		text += " " + r.Name + "/" + r.Limits[0].Name
	}
	w.bound = append(w.bound, text)
	return core.ObserverFuncs{
		Keys: w.keys,
		Decided: func(_ context.Context, o core.Observation) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, o)
		},
		Stored: func(_ context.Context, operation string, took time.Duration, err error) {
			w.stored = append(w.stored, fmt.Sprint(operation, " ", took, " ", err))
		},
		Reported: func(_ context.Context, event string) { w.reported = append(w.reported, event) },
	}
}

func (w *watcher) take() []core.Observation {
	seen := w.seen
	w.seen = nil
	return seen
}

// whole is what an observation says of a decision.
func whole(d core.Decision, rule, limit int) core.Observation {
	o := core.Observation{Allowed: d.Allowed, Reason: d.Reason, Degraded: d.Degraded, Rule: rule, Limit: limit, Cost: d.Cost, Err: d.Err}
	if rule >= 0 {
		o.Remaining, o.Capacity, o.RetryAfter = d.Remaining, d.Limit().Capacity(), d.RetryAfter
	}
	return o
}

// However a decision is reached, the observer is told of it once, and of what it says.
func TestObserverIsToldOfEveryDecision(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 5)) //nolint:gosec // a test's
	fault := errors.New("down")
	names := []string{"one", "two"}
	key := func(dst []byte, r core.Request) ([]byte, error) {
		switch text := r.HeaderValues("Key")[0]; text {
		case "skip":
			return dst, core.SkipRule
		case "bad":
			return dst, core.ErrBadRequest
		case "fail":
			return dst, fault
		default:
			return append(dst, text...), nil
		}
	}
	for i := range 3 {
		limits := [][]core.Limit{{core.PerMinute(5)}, {core.PerMinute(9), core.PerHour(120)}}
		w := &watcher{keys: i == 1}
		clock := newClock()
		store := core.Store(core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now})))
		wrapped := countingIn(store)
		if i > 0 {
			store = wrapped
		}
		config := core.Config{Name: "l", Log: new(lines).logger(), Observer: w}
		for j, name := range names {
			config.Rules = append(config.Rules, core.Rule{Name: name, Key: key, Limits: limits[j]})
		}
		config.Store = store
		l := newLimiter(t, config, nil)
		config.Store = nil
		var sum core.Stats
		for range 4000 {
			clock.advance(time.Duration(random.IntN(4)) * time.Second)
			var d core.Decision
			if i == 2 {
				wrapped.degraded, wrapped.fault = random.IntN(2) == 0, nil
				if random.IntN(9) == 0 {
					wrapped.fault = fault
				}
			}
			text := []string{"a", "b", "skip", "bad", "fail"}[random.IntN(5)]
			allow, peek := false, false
			switch rule := names[random.IntN(2)]; random.IntN(7) {
			case 0:
				d, _ = l.Take(t.Context(), int64(random.IntN(3)), core.Hit{Rule: rule, Key: text})
			case 1:
				d, _ = l.Take(t.Context(), 1, core.Hit{Rule: "one", Key: text}, core.Hit{Rule: "two", Key: text})
			case 2:
				d.Allowed, allow = l.Allow(t.Context(), core.Hit{Rule: rule, Key: text}), true
			case 3:
				d, _ = l.Peek(t.Context(), 1, core.Hit{Rule: rule, Key: text})
				peek = true
			case 4:
				config.Rules[0].Limits[0].Quota = int64(4 + random.IntN(3))
				if err := l.Reconfigure(config); err != nil {
					t.Fatal(err)
				}
				continue
			default:
				d = l.Check(&request{header: map[string][]string{"Key": {text}}})
			}
			seen := w.take()
			if peek {
				if len(seen) != 0 {
					t.Fatalf("seed %d: a peek was observed: %+v", seed, seen)
				}
				continue
			}
			if len(seen) != 1 {
				t.Fatalf("seed %d: %d observations of %v", seed, len(seen), d)
			}
			got := seen[0]
			if !w.keys && got.Key != "" || w.keys && got.Rule >= 0 && got.Key != text {
				t.Fatalf("seed %d: the key of %q is %q", seed, text, got.Key)
			}
			got.Key = ""
			if allow {
				if got.Allowed != d.Allowed || got.Cost != 1 || got.Reason == core.ReasonOverLimit && got.RetryAfter <= 0 {
					t.Fatalf("seed %d: %+v of Allow, which returned %v", seed, got, d.Allowed)
				}
			} else {
				rule, limit := slices.Index(names, d.Rule()), 0
				if rule >= 0 {
					limit = slices.IndexFunc(limits[rule], func(l core.Limit) bool { return l.Window == d.Limit().Window })
				}
				if want := whole(d, rule, limit); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
					t.Fatalf("seed %d: observed\n%+v of\n%+v", seed, got, want)
				}
			}
			if got.Degraded {
				sum.Degraded++
			}
			switch {
			case got.Reason == core.ReasonFailed:
				sum.Failed++
			case got.Reason == core.ReasonBadRequest:
				sum.BadRequests++
			case got.Allowed:
				sum.Allowed++
			default:
				sum.Denied++
			}
		}
		if got := l.Stats(); got != sum {
			t.Errorf("seed %d: observed %+v, Stats %+v", seed, sum, got)
		}
		if !strings.HasPrefix(w.bound[0], "l one/one two/two-1m") {
			t.Errorf("Observe was given %q", w.bound[0])
		}
	}
}

func TestObserverOfADryRun(t *testing.T) {
	w := &watcher{}
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}}, DryRun: true, Observer: w}, newClock())
	check := func(want string) {
		t.Helper()
		var all []string
		for _, o := range w.take() {
			all = append(all, fmt.Sprintf("%d allowed=%v dry_run=%v %v", o.Rule, o.Allowed, o.DryRun, o.Reason))
		}
		if got := strings.Join(all, "; "); got != want {
			t.Errorf("observed %q, want %q", got, want)
		}
	}
	l.Check(&request{})
	check("0 allowed=true dry_run=false within limits")
	for range 2 {
		l.Check(&request{})
		check("0 allowed=true dry_run=true over limit")
		_, _ = l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"})
		check("0 allowed=true dry_run=true over limit")
		l.Allow(t.Context(), core.Hit{Rule: "r", Key: "k"})
		check("0 allowed=true dry_run=true over limit")
	}
	l.Check(&request{method: "OPTIONS", header: map[string][]string{"Access-Control-Request-Method": {"GET"}}})
	check("-1 allowed=true dry_run=false skipped")
}

func TestObserverIsToldHowLongTheStoreTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{}
		s := &around{core.Must(core.NewMemory(core.MemoryConfig{})), func(ctx context.Context, c core.Counters, b *core.Batch) error {
			switch b.Op {
			case core.OpTake, core.OpPeek:
				time.Sleep(time.Second)
			case core.OpReset:
				time.Sleep(2 * time.Second)
			case core.OpCharge:
				return errors.New("down")
			case core.OpBlock:
				return core.ErrUnsupported
			}
			return c.Do(ctx, b)
		}}
		l := newLimiter(t, core.Config{Name: "l", Store: s, Observer: w, Log: new(lines).logger(), Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(5)}}}}, nil)
		hit := core.Hit{Rule: "r", Key: "k"}
		d, _ := l.Take(t.Context(), 1, hit)
		_, _ = l.Peek(t.Context(), 1, hit)
		_ = l.Adjust(t.Context(), d, 3)
		d, _ = l.Take(t.Context(), 1, hit)
		_ = l.Adjust(t.Context(), d, 0)
		_ = l.Reset(t.Context(), hit)
		_ = l.Block(t.Context(), time.Minute, hit)
		l.Report(t.Context(), "suspected")
		want := []string{"take 1s <nil>", "peek 1s <nil>", "charge 0s down", "take 1s <nil>", "refund 0s <nil>", "reset 2s <nil>"}
		if n := len(want); len(w.stored) != n+1 || !slices.Equal(w.stored[:n], want) || !strings.HasPrefix(w.stored[n], "block 0s limiter") {
			t.Errorf("the store: %q", w.stored)
		}
		if len(w.seen) != 2 || len(w.reported) != 1 || w.reported[0] != "suspected" {
			t.Errorf("%d decisions, and %q", len(w.seen), w.reported)
		}
	})
}

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
	extra := hooktest.Funcs{KeyExtraFunc: func(core.Request) (string, error) { return "x", nil }}
	l = newLimiter(t, core.Config{Observer: asks, Hooks: extra, Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(3)}}}}, nil)
	l.Check(&request{})
	if left != 2 {
		t.Errorf("the observer has seen that %d are left, want 2", left)
	}
}

func TestObserverAllocatesNothing(t *testing.T) {
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
		if got := testing.AllocsPerRun(1000, f); got > 0 && !racetest.Enabled {
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
