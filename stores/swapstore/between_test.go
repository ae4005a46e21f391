package swapstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// A take of several keys over a Swapper charges all or none, whatever happens
// between its steps.
func TestATakeOverASwapperChargesAllOrNone(t *testing.T) {
	eachBetween(t, func(b *between, events map[int]func(b *between) error) {
		b.charge("a", "c")
		failures := b.failures(events)
		b.at(events)
		d, err := b.l.Take(b.ctx, 1, b.hits()...)
		switch {
		case err != nil && d.Allowed:
			b.t.Errorf("allowed, with the error %v", err)
		case err != nil && !errors.Is(err, errFault) && !errors.Is(err, context.Canceled) && !errors.Is(err, core.ErrContended):
			b.t.Error(err)
		}
		// A store that fails while hits are given back keeps those of one key.
		if own := b.own(); d.Allowed && own != len(betweenRules) || !d.Allowed && own > *failures {
			b.t.Errorf("allowed %v, %v: %d keys are charged after %d failures", d.Allowed, err, own, *failures)
		}
		if err == nil && !d.Allowed { // the results are those after the charges were given back
			for s := range d.Limits() {
				if want := betweenQuota - b.charged[s.Rule]; s.Remaining != want {
					b.t.Errorf("rule %s: %d hits remain, want %d", s.Rule, s.Remaining, want)
				}
			}
		}
	})
}

// A request whose client has gone is settled all the same, and a refund takes
// back no charge of others that came in between. If the store fails for one
// key, the others are given back.
func TestARequestOverASwapperIsSettledWhateverHappens(t *testing.T) {
	eachBetween(t, func(b *between, events map[int]func(b *between) error) {
		r := floodgatetest.NewRequest("GET", "/", floodgatetest.Context(b.ctx))
		d := b.l.Check(r)
		if !d.Allowed {
			b.t.Fatal(d)
		}
		failures := b.failures(events)
		b.at(events)
		b.l.Settle(r, d, core.Outcome{Status: 200})
		own := b.own()
		contended := 0
		if len(events) > 10 {
			contended = 1
		}
		if own > *failures+contended || (own > 0) != (b.l.Stats().Failed == 1) {
			b.t.Errorf("after %d failures the hits of %d keys are still charged; Stats %+v", *failures, own, b.l.Stats())
		}
	})
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
		c := core.Config{Name: "l", Log: quiet, Store: core.Must(swapstore.New(b.s, swapstore.Config{Clock: b.clock.Now, Attempts: 8}))}
		for _, name := range betweenRules {
			c.Rules = append(c.Rules, core.Rule{
				Name: name, Limits: []core.Limit{{Quota: betweenQuota, Window: time.Hour, Algorithm: core.FixedWindow}},
				Key:    func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, 'k'), nil },
				Counts: func(core.Request, core.Outcome) bool { return false },
			})
		}
		return core.Must(core.New(c))
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
	b.s.at(func(step int) error {
		if f := events[step]; f != nil {
			return f(b)
		}
		return nil
	})
}

// own returns how many keys have a hit of ours, beside those of the others.
func (b *between) own() (n int) {
	b.t.Helper()
	b.s.before = nil
	for _, rule := range betweenRules {
		d, err := b.l.Peek(context.Background(), 0, core.Hit{Rule: rule, Key: "k"})
		if err != nil {
			b.t.Fatal(err)
		}
		switch used := betweenQuota - d.Remaining; used - b.charged[rule] {
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
	if name := (core.StoreRule{Name: "c"}).StoredKey("l", []byte("k\x00")); b.s.values[name].Version != nil {
		b.s.overtake(name)
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
