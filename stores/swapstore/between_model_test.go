package swapstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// swapper is a Swapper of values in memory. Its operations fail if their context
// has ended. Before each of them it calls before.
type swapper struct {
	values  map[string]swapstore.Value
	version int
	steps   int
	before  func(step int) error
}

func newSwapper() *swapper { return &swapper{values: map[string]swapstore.Value{}} }

func (s *swapper) step(ctx context.Context) error {
	s.steps++
	if s.before != nil {
		if err := s.before(s.steps); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *swapper) Load(ctx context.Context, names []string) ([]swapstore.Value, error) {
	if err := s.step(ctx); err != nil {
		return nil, err
	}
	values := make([]swapstore.Value, len(names))
	for i, n := range names {
		values[i] = s.values[n]
	}
	return values, nil
}

func (s *swapper) Swap(ctx context.Context, name string, old swapstore.Value, value []byte, _ time.Duration) (bool, error) {
	if err := s.step(ctx); err != nil {
		return false, err
	}
	if s.values[name].Version != old.Version {
		return false, nil
	}
	s.version++
	s.values[name] = swapstore.Value{Value: value, Version: s.version}
	return true, nil
}

func (s *swapper) Delete(ctx context.Context, names []string) error {
	if err := s.step(ctx); err != nil {
		return err
	}
	for _, n := range names {
		delete(s.values, n)
	}
	return nil
}

// between is a limiter of three rules over a swapper, and another one that
// comes in between.
type between struct {
	t        *testing.T
	s        *swapper
	l, other *core.Limiter
	clock    *clock
	ctx      context.Context
	cancel   context.CancelFunc
	charged  map[string]int64 // by the other one
}

var betweenRules = []string{"a", "b", "c"}

const betweenQuota = 4

func newBetween(t *testing.T) *between {
	b := &between{t: t, s: newSwapper(), clock: newClock(), charged: map[string]int64{}}
	limiter := func() *core.Limiter {
		c := core.Config{Name: "l", Log: slog.New(slog.DiscardHandler), Store: core.Must(swapstore.New(b.s, swapstore.Config{Clock: b.clock.Now, Attempts: 8}))}
		for _, name := range betweenRules {
			c.Rules = append(c.Rules, core.Rule{Name: name, Key: static("k"), Counts: never, Limits: []core.Limit{{Quota: betweenQuota, Window: time.Hour, Algorithm: core.FixedWindow}}})
		}
		return newLimiter(t, c)
	}
	b.l, b.other = limiter(), limiter()
	b.ctx, b.cancel = context.WithCancel(context.Background())
	t.Cleanup(b.cancel)
	return b
}

// what may happen before a step.
var betweenEvents = map[string]func(b *between) error{
	"the client hangs up": func(b *between) error { b.cancel(); return nil },
	"the client hangs up during a pause": func(b *between) error {
		time.AfterFunc(1, b.cancel) // the bubble's time goes on during pauses only
		return nil
	},
	"the store fails":   func(*between) error { return errFault },
	"others charge all": func(b *between) error { b.charge(betweenRules...); return nil },
	"others charge one": func(b *between) error { b.charge("b"); return nil },
	"others use one up": func(b *between) error {
		for range betweenQuota {
			b.charge("c")
		}
		return nil
	},
}

// charge charges a hit to each of the rules by themselves, as somebody else.
func (b *between) charge(rules ...string) {
	b.t.Helper()
	before, steps := b.s.before, b.s.steps
	b.s.before = nil
	defer func() { b.s.before, b.s.steps = before, steps }()
	for _, rule := range rules {
		d, err := b.other.Take(context.Background(), 1, core.Hit{Rule: rule, Key: "k"})
		if err != nil {
			b.t.Fatal(err)
		}
		if d.Allowed {
			b.charged[rule]++
		}
	}
}

// at lets events happen before steps from now on.
func (b *between) at(events map[int]func(b *between) error) {
	b.s.steps = 0
	b.s.before = func(n int) error {
		if f := events[n]; f != nil {
			return f(b)
		}
		return nil
	}
}

// own returns how many keys have a hit of ours, beside those of the others.
func (b *between) own() (n int) {
	b.t.Helper()
	b.s.before = nil
	for _, rule := range betweenRules {
		switch used := betweenQuota - left(b.t, b.l, rule, "k"); used - b.charged[rule] {
		case 0:
		case 1:
			n++
		default:
			b.t.Errorf("rule %s: %d hits are counted, and %d are of others", rule, used, b.charged[rule])
		}
	}
	return n
}

func (b *between) hits() (hits []core.Hit) {
	for _, rule := range betweenRules {
		hits = append(hits, core.Hit{Rule: rule, Key: "k"})
	}
	return hits
}

// eachBetween runs f with each event before each of the first steps, alone and
// together with another one before a later step, and with a key that is changed
// before all steps from one on. It does so in a bubble, because the store waits
// between attempts.
func eachBetween(t *testing.T, f func(b *between, events map[int]func(b *between) error)) {
	type events = map[int]func(b *between) error
	run := func(name string, e events) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(newBetween(t), e) })
		})
	}
	for first := 1; first <= 10; first++ {
		overtaken := events{}
		for step := first; step < 100; step++ {
			overtaken[step] = (*between).overtake
		}
		run(fmt.Sprintf("overtaken from step %d on", first), overtaken)
		for name, event := range betweenEvents {
			run(fmt.Sprintf("%s before step %d", name, first), events{first: event})
			for second := first + 1; second <= 10; second++ {
				for _, then := range []string{"the client hangs up", "the client hangs up during a pause", "the store fails"} {
					run(fmt.Sprintf("%s before step %d, %s before step %d", name, first, then, second), events{first: event, second: betweenEvents[then]})
				}
			}
		}
	}
}

// overtake makes a swap of the last key fail.
func (b *between) overtake() error {
	name := core.StoreRule{Name: "c"}.StoredKey("l", []byte("k\x00"))
	if old := b.s.values[name]; old.Version != nil {
		b.s.version++
		b.s.values[name] = swapstore.Value{Value: old.Value, Version: b.s.version}
	}
	return nil
}

// failures counts how often the store fails.
func (b *between) failures(events map[int]func(b *between) error) *int {
	n := new(int)
	for step, event := range events {
		events[step] = func(b *between) error {
			err := event(b)
			if err != nil {
				*n++
			}
			return err
		}
	}
	return n
}
