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
	bound    []string
	seen     []seen
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
		Decided: func(_ context.Context, d core.Decision, rule, limit int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, seen{d, rule, limit})
		},
		Stored: func(_ context.Context, operation string, took time.Duration, err error) {
			w.stored = append(w.stored, fmt.Sprint(operation, " ", took, " ", err))
		},
		Reported: func(_ context.Context, event string) { w.reported = append(w.reported, event) },
	}
}

// seen is what an observer is told of a decision.
type seen struct {
	core.Decision

	rule, limit int
}

func (w *watcher) take() []seen {
	seen := w.seen
	w.seen = nil
	return seen
}

// observeFunc is an Observer of one function.
type observeFunc func(limiter string, rules []core.Rule) core.ObserverFuncs

func (f observeFunc) Observe(limiter string, rules []core.Rule) core.ObserverFuncs {
	return f(limiter, rules)
}

// However a decision is reached, the observer is told of it once.
func TestObserverIsToldOfEveryDecision(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	faults := map[string]error{"skip": core.SkipRule, "bad": core.ErrBadRequest, "fail": errFault}
	key := func(dst []byte, r core.Request) ([]byte, error) {
		return append(dst, r.Method()...), faults[r.Method()]
	}
	w, clock := new(watcher), newClock()
	s := countingIn(core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now})))
	rules := numbered(2)
	rules[0].Key, rules[1].Key, rules[1].Limits = key, key, []core.Limit{core.PerMinute(9), core.PerHour(120)}
	l := newLimiter(t, core.Config{Name: "l", Store: s, Log: new(lines).logger(), Observer: w, Rules: rules}, nil)
	for range 10_000 {
		clock.advance(time.Duration(random.IntN(4)) * time.Second)
		s.degraded, s.fault = random.IntN(2) == 0, nil
		if random.IntN(9) == 0 {
			s.fault = errFault
		}
		text := []string{"a", "b", "skip", "bad", "fail"}[random.IntN(5)]
		hits := []core.Hit{{Rule: "r0", Key: text}, {Rule: "r1", Key: text}}[random.IntN(2):]
		var d core.Decision
		way := []string{"Check", "Take", "Allow", "Peek"}[random.IntN(4)]
		switch way {
		case "Check":
			d = l.Check(&request{method: text})
		case "Take":
			d, _ = l.Take(t.Context(), int64(random.IntN(3)), hits...)
		case "Allow":
			d.Allowed = l.Allow(t.Context(), hits...)
		case "Peek":
			_, _ = l.Peek(t.Context(), 1, hits...)
		}
		seen := w.take()
		if way == "Peek" && len(seen) == 0 {
			continue
		}
		if len(seen) != 1 {
			t.Fatalf("seed %d: %d observations of %s: %v", seed, len(seen), way, d)
		}
		got := seen[0]
		if way == "Allow" {
			if got.Allowed != d.Allowed || got.Cost != 1 {
				t.Fatalf("seed %d: %+v of Allow, which returned %v", seed, got, d.Allowed)
			}
			continue
		}
		rule, limit := slices.Index([]string{"r0", "r1"}, d.Rule()), 0
		if d.Limit().Window == time.Hour {
			limit = 1
		}
		if got.Decision != d || got.rule != rule || got.limit != limit {
			t.Fatalf("seed %d: observed\n%+v of\n%+v", seed, got, d)
		}
	}
	if w.bound[0] != "l r0/r0 r1/r1-1m" {
		t.Errorf("Observe was given %q", w.bound[0])
	}
}

func TestObserverOfADryRun(t *testing.T) {
	w, config := &watcher{}, oneRule(core.PerMinute(1))
	config.DryRun, config.Observer = true, w
	l := newLimiter(t, config, newClock())
	check := func(want string) {
		t.Helper()
		var all []string
		for _, o := range w.take() {
			all = append(all, fmt.Sprintf("%d allowed=%v dry_run=%v %v", o.rule, o.Allowed, o.DryRun, o.Reason))
		}
		if got := strings.Join(all, "; "); got != want {
			t.Errorf("observed %q, want %q", got, want)
		}
	}
	l.Check(&request{})
	check("0 allowed=true dry_run=false within limits")
	l.Check(&request{})
	check("0 allowed=true dry_run=true over limit")
	l.Allow(t.Context(), core.Hit{Rule: "r", Key: "k"})
	check("0 allowed=true dry_run=true over limit")
	l.Check(&request{method: "OPTIONS", header: map[string][]string{"Access-Control-Request-Method": {"GET"}}})
	check("-1 allowed=true dry_run=false skipped")
}

func TestObserverIsToldHowLongTheStoreTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, config := &watcher{}, oneRule(core.PerMinute(5))
		config.Observer, config.Log = w, new(lines).logger()
		config.Store = aroundMemory(func(ctx context.Context, c core.Counters, b *core.Batch) error {
			switch b.Op {
			case core.OpTake, core.OpPeek:
				time.Sleep(time.Second)
			case core.OpReset:
				time.Sleep(2 * time.Second)
			case core.OpCharge:
				return errors.New("down")
			}
			return c.Do(ctx, b)
		})
		l := newLimiter(t, config, nil)
		hit := core.Hit{Rule: "r", Key: "k"}
		d, _ := l.Take(t.Context(), 1, hit)
		_, _ = l.Peek(t.Context(), 1, hit)
		_ = l.Adjust(t.Context(), d, 3)
		d, _ = l.Take(t.Context(), 1, hit)
		_ = l.Adjust(t.Context(), d, 0)
		_ = l.Reset(t.Context(), hit)
		l.Report(t.Context(), "suspected")
		if want := []string{"take 1s <nil>", "peek 1s <nil>", "charge 0s down", "take 1s <nil>", "refund 0s <nil>", "reset 2s <nil>"}; !slices.Equal(w.stored, want) {
			t.Errorf("the store: %q", w.stored)
		}
		if len(w.seen) != 2 || !slices.Equal(w.reported, []string{"suspected"}) {
			t.Errorf("%d decisions, and %q", len(w.seen), w.reported)
		}
	})
}

// Queued says who waits for which rule, and Decided for how long.
func TestObserverIsToldWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		tell := func(what ...any) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprint(what...))
		}
		config := core.Config{MaxWait: time.Minute, Rules: numbered(2)}
		config.Rules[1].Limits = []core.Limit{fixed(1, time.Second)}
		config.Observer = observeFunc(func(string, []core.Rule) core.ObserverFuncs {
			return core.ObserverFuncs{
				Queued:  func(_ context.Context, rule int, change int64) { tell(rule, " ", change) },
				Decided: func(_ context.Context, d core.Decision, _, _ int) { tell(d.Waited) },
			}
		})
		l := newLimiter(t, config, nil)
		for range 2 {
			l.Check(&request{})
		}
		if want := []string{"0s", "1 1", "1 -1", "1s"}; !slices.Equal(told, want) {
			t.Errorf("%q", told)
		}
	})
}

// An observer is not told of rules that do not come into force. One that comes with a Reconfigure
// is told of decisions and of the store.
func TestObserverOfAReconfigure(t *testing.T) {
	first, second, store, fault, denies := new(watcher), new(watcher), aroundMemory(nil), errFault, false
	store.reopen = func(c core.Counters, rules []core.StoreRule) (core.Counters, error) {
		denies = rules[0].DenyUnreadable
		return c, fault
	}
	config := oneRule(core.PerMinute(1))
	config.Store, config.Observer, config.DenyUnreadable = store, first, true
	l := newLimiter(t, config, nil)
	bad := oneRule(core.PerMinute(-2))
	bad.Observer = second
	if err := l.Reconfigure(bad); !errors.Is(err, core.ErrConfig) {
		t.Error(err)
	}
	config.Observer = second
	if err := l.Reconfigure(config); !errors.Is(err, errFault) {
		t.Error(err)
	}
	if len(first.bound) != 1 || len(second.bound) != 0 {
		t.Errorf("the observers were told of %q and %q", first.bound, second.bound)
	}
	fault, config.Observer = nil, observeFunc(func(limiter string, rules []core.Rule) core.ObserverFuncs {
		l.Allow(t.Context(), core.Hit{Rule: "r", Key: "k"}) // the rules are not in force yet
		return second.Observe(limiter, rules)
	})
	if err := l.Reconfigure(config); err != nil {
		t.Fatal(err)
	}
	l.Allow(t.Context(), core.Hit{Rule: "r", Key: "k"})
	if len(first.seen) != 1 || len(second.seen) != 1 || len(second.stored) != 1 || !denies {
		t.Errorf("%d and %d decisions and %q are observed, the store denies: %t", len(first.seen), len(second.seen), second.stored, denies)
	}
}

// The functions of an observer may use the limiter: no lock is held.
func TestObserverAsksTheLimiter(t *testing.T) {
	var l *core.Limiter
	left := int64(-1)
	config := oneRule(core.PerMinute(3))
	config.Hooks = hooktest.Funcs{KeyExtraFunc: func(core.Request) (string, error) { return "x", nil }}
	config.Observer = observeFunc(func(string, []core.Rule) core.ObserverFuncs {
		return core.ObserverFuncs{Decided: func(ctx context.Context, d core.Decision, _, _ int) {
			d, _ = l.Peek(ctx, 0, d.Hit())
			left = d.Remaining
		}}
	})
	l = newLimiter(t, config, nil)
	l.Report(t.Context(), "something that it does not want to know")
	l.Check(&request{})
	if left != 2 {
		t.Errorf("the observer has seen that %d are left, want 2", left)
	}
}

func TestADecisionAllocatesNothing(t *testing.T) {
	counts := observeFunc(func(string, []core.Rule) core.ObserverFuncs {
		return core.ObserverFuncs{Decided: func(context.Context, core.Decision, int, int) {}}
	})
	ctx, r, hit := t.Context(), &request{}, core.Hit{Rule: "r", Key: "k"}
	for name, observer := range map[string]core.Observer{"no observer": nil, "an observer": counts} {
		config := oneRule(core.PerHour(core.MaxQuota))
		config.Observer = observer
		l := newLimiter(t, config, nil)
		for what, f := range map[string]func(){
			"Allow":        func() { l.Allow(ctx, hit) },
			"Take":         func() { _, _ = l.Take(ctx, 1, hit) },
			"Take, denied": func() { _, _ = l.Take(ctx, core.MaxQuota, hit) },
			"Check":        func() { l.Check(r) },
		} {
			if got := testing.AllocsPerRun(1000, f); got > 0 && !racetest.Enabled {
				t.Errorf("%s with %s: %v allocations", what, name, got)
			}
		}
	}
}

// denials prints which limits deny requests.
type denials struct{}

func (denials) Observe(limiter string, rules []core.Rule) core.ObserverFuncs {
	return core.ObserverFuncs{
		Decided: func(_ context.Context, d core.Decision, rule, limit int) {
			if d.Reason == core.ReasonOverLimit {
				fmt.Println("denied:", limiter, rules[rule].Limits[limit].Name)
			}
		},
		Reported: func(_ context.Context, event string) { fmt.Println("reported:", limiter, event) },
	}
}

func ExampleObserver() {
	limiter := core.Must(core.New(core.Config{
		Name:     "jobs",
		Rules:    []core.Rule{{Name: "tenant", Limits: []core.Limit{core.PerSecond(5), core.PerHour(1)}}},
		Observer: denials{},
	}))
	for range 2 {
		limiter.Allow(context.Background(), core.Hit{Rule: "tenant", Key: "42"})
	}
	// Output: denied: jobs tenant-1h
}

// A checker around a limiter tells the limiter's observer what it has found out.
func ExampleLimiter_Report() {
	limiter := core.Must(core.New(core.Config{
		Name:     "uploads",
		Rules:    []core.Rule{{Name: "tenant", Limits: []core.Limit{core.PerHour(1)}}},
		Observer: denials{},
	}))
	limiter.Report(context.Background(), "virus")
	// Output: reported: uploads virus
}
