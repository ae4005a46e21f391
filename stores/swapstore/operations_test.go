package swapstore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

func TestAnOperationGivesUpAfterItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i, op := range []core.Op{core.OpTake, core.OpCharge, core.OpRefund, core.OpGrant} {
			w := newWorld(t, quiet, hourly("a"))
			attempts := []int{1, 8, 20, 0}[i]
			w.counters = core.Must(core.Must(swapstore.New(w.swapper, swapstore.Config{Clock: w.clock.Now, Attempts: attempts})).Open("l", w.rules))
			w.do(core.OpTake, 1)
			w.at(func(int) error { w.overtake(stored("a")); return nil })
			began := time.Now()
			err := w.try(op, 1)
			n, pauses := cmp.Or(attempts, 32), time.Since(began)
			if !errors.Is(err, core.ErrContended) || !errors.Is(err, core.ErrNotCharged) || !strings.HasPrefix(err.Error(), fmt.Sprintf(`limiter "l": %d attempts: `, n)) ||
				w.steps != 2*n || (pauses > 0) != (n > 1) || pauses > time.Second {
				t.Errorf("%v: error %v after %d loads and swaps in %v", op, err, w.steps, pauses)
			}
		}
	})
}

// An operation whose caller has hung up is not tried again, and says that it has changed nothing.
func TestACanceledOperationIsNotTriedAgain(t *testing.T) {
	for _, op := range []core.Op{core.OpTake, core.OpCharge, core.OpBlock} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			w := newWorld(t, quiet, hourly("a"))
			w.deaf = true
			w.at(func(step int) error {
				w.overtake(stored("a"))
				if step == 2 { // the Swap
					time.AfterFunc(1, cancel) // the bubble's time goes on during pauses only
				}
				return nil
			})
			b := w.batch(1)
			b.For = time.Hour
			// A pause that ends at the same time may be taken for the end of the pause.
			if err := storetest.Do(ctx, w.counters, op, b); w.steps > 6 || !errors.Is(err, context.Canceled) || !errors.Is(err, core.ErrNotCharged) {
				t.Errorf("%v: error %v after %d steps", op, err, w.steps)
			}
		})
	}
}

// The value of a key that is not charged is never written: neither when the others
// are charged, nor when these charges are given back.
func TestAKeyWithoutACostIsNotWritten(t *testing.T) {
	w := newWorld(t, quiet, hourly("a"), hourly("b"), hourly("c"))
	w.do(core.OpTake, 1, 1, 1)
	names := func() (names []string) {
		for _, s := range w.swaps {
			names = append(names, s.name)
		}
		return names
	}
	w.swaps = nil
	w.do(core.OpTake, 0, 1, 1)
	if got := names(); !slices.Equal(got, []string{stored("b"), stored("c")}) {
		t.Errorf("written: %q", got)
	}
	w.swaps = nil
	w.at(func(step int) error {
		if step == 3 { // the Swap of c
			return errFault
		}
		return nil
	})
	if err := w.try(core.OpTake, 0, 1, 1); !errors.Is(err, errFault) || !slices.Equal(names(), []string{stored("b"), stored("b")}) {
		t.Errorf("%v; written: %q", err, names())
	}
}

// A value is kept for as long as its limit counts, from the time of the charge.
func TestTheLifetimeOfAValue(t *testing.T) {
	w := newWorld(t, quiet, core.StoreRule{Name: "a", Limits: []core.Limit{{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow}}})
	for i, want := range []time.Duration{time.Hour, 50 * time.Minute} {
		w.do(core.OpTake, 1)
		if got := w.swaps[i].ttl; got != want {
			t.Errorf("kept for %v, want %v", got, want)
		}
		w.clock.advance(10 * time.Minute)
	}
}

// The error of an operation wraps ErrNotCharged if it is certain to have changed nothing:
// the caller may try again then. It has the cause, whatever else has failed.
func TestTheErrorTellsThatNothingWasCharged(t *testing.T) {
	rejected := fmt.Errorf("rejected: %w", core.ErrNotCharged)
	for _, row := range []struct {
		name    string
		op      core.Op
		keys    int
		fails   int  // which step
		lasting bool // all later steps fail, too
		err     error
		want    bool
		left    []int64 // of three hits a key, of which two have been taken before
	}{
		{"nothing can be loaded", core.OpTake, 2, 1, true, errFault, true, []int64{1, 1}},
		{"a Swap is rejected", core.OpTake, 1, 2, false, rejected, true, []int64{1, 1}},
		{"a Swap fails", core.OpTake, 1, 2, false, errFault, false, []int64{1, 1}},
		{"a Swap is rejected, and the first key's charge is given back", core.OpTake, 2, 3, false, rejected, true, []int64{1, 1}},
		{"a Swap is rejected, and the first key's charge stays", core.OpTake, 2, 3, true, rejected, false, []int64{0, 1}},
		{"a Swap fails, and the first key's charge is given back", core.OpTake, 2, 3, false, errFault, false, []int64{1, 1}},
		{"a Swap fails, and the first key's charge stays", core.OpTake, 2, 3, true, errFault, false, []int64{0, 1}},
		{"the first key cannot be loaded", core.OpGrant, 2, 1, false, errFault, true, []int64{1, 1}},
		{"the first key's Swap is rejected", core.OpGrant, 2, 2, false, rejected, true, []int64{1, 1}},
		{"the first key's Swap fails", core.OpGrant, 2, 2, false, errFault, false, []int64{1, 2}},
		{"the second key cannot be loaded", core.OpGrant, 2, 3, true, errFault, false, []int64{2, 1}},
		{"the second key's Swap is rejected", core.OpGrant, 2, 4, true, rejected, false, []int64{2, 1}},
		{"a refund's Swap is rejected", core.OpRefund, 1, 2, false, rejected, true, []int64{1, 1}},
		{"the first of two refunds cannot be loaded", core.OpRefund, 2, 1, false, errFault, false, []int64{1, 2}},
	} {
		w := newWorld(t, quiet, hourly("a"), hourly("b"))
		taken := w.do(core.OpTake, 2, 2)
		w.at(func(step int) error {
			if step == row.fails || step > row.fails && row.lasting {
				return fmt.Errorf("step %d: %w", step, row.err)
			}
			return nil
		})
		b := w.batch([]int64{1, 1}[:row.keys]...)
		if row.op == core.OpRefund {
			b.Items = taken.Items[:row.keys]
			for i := range b.Items {
				b.Items[i].Cost = 1
			}
		}
		err := storetest.Do(t.Context(), w.counters, row.op, b)
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("step %d: ", row.fails)) || errors.Is(err, errFault) != errors.Is(row.err, errFault) || errors.Is(err, core.ErrNotCharged) != row.want {
			t.Errorf("%v: %s: the error %v says that nothing was charged: %v, want %v", row.op, row.name, err, !row.want, row.want)
		}
		if got := w.left(); !slices.Equal(got, row.left) {
			t.Errorf("%v: %s: %d left, want %d", row.op, row.name, got, row.left)
		}
	}
}

// A block is stored beside the counts: it ends with its time, with another one of no
// length, and with a reset, and takes of another process see it.
func TestABlockedKey(t *testing.T) {
	limit := func(window time.Duration) []core.StoreRule {
		return []core.StoreRule{{Name: "a", Limits: []core.Limit{{Quota: 5, Window: window}}}}
	}
	here := newWorld(t, quiet, limit(time.Minute)...)
	there := *here
	there.counters = core.Must(here.counters.Reopen(limit(time.Hour)))
	block := func(d time.Duration) {
		t.Helper()
		b := here.batch(0)
		b.For = d
		if err := storetest.Do(t.Context(), here.counters, core.OpBlock, b); err != nil {
			t.Fatal(err)
		}
	}
	taken := func(want bool) {
		t.Helper()
		if a, b := here.do(core.OpTake, 1).Allowed, there.do(core.OpTake, 1).Allowed; a != want || b != want {
			t.Errorf("allowed here %t and there %t, want %t", a, b, want)
		}
	}
	if block(0); len(here.values) > 0 {
		t.Error("the end of no block is stored")
	}
	if err := here.try(core.OpResetAll, 0); !errors.Is(err, core.ErrUnsupported) || !strings.HasPrefix(err.Error(), `limiter "l": reset all: `) {
		t.Error(err)
	}
	taken(true)
	block(time.Hour)
	block(10 * time.Second) // the last one counts
	taken(false)
	if r := there.do(core.OpTake, 1).Items[0].Results[0]; r != (core.Result{ResetAfter: time.Hour + 1000, MoreAfter: time.Hour + 1000, RetryAfter: 10 * time.Second}) {
		t.Errorf("%+v", r)
	}
	here.clock.advance(10*time.Second - time.Microsecond)
	taken(false)
	here.clock.advance(time.Microsecond)
	taken(true)
	if got := there.left()[0]; got != 3 {
		t.Errorf("%d left, want 3: the counts stay", got)
	}
	block(time.Hour)
	taken(false)
	block(0)
	taken(true)
	for range 2 { // the second time the key has no value
		block(time.Hour)
		taken(false)
		there.do(core.OpReset, 0)
	}
	taken(true)
}

// A take of several keys over a Swapper charges all or none, whatever happens between its steps.
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
				if want := betweenQuota - b.charged[s.Rule]; s.Remaining != want || s.ResetAfter > time.Hour {
					b.t.Errorf("rule %s: %d hits remain for %v, want %d", s.Rule, s.Remaining, s.ResetAfter, want)
				}
			}
		}
	})
}

// between is a limiter of three rules over a swapper, and another one that comes in between.
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

// eachBetween runs f with each event before each of the first steps, alone and together with
// another one before a later step, and with a key that is changed before all steps from one on. It
// does so in a bubble, because the store waits between attempts.
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

// The clocks of two processes differ by windows: the log of the one behind says so, once
// a minute. By less than a window, it says nothing.
func TestClocksThatDifferByAWindowAreLogged(t *testing.T) {
	for apart, want := range map[time.Duration]int{time.Hour - time.Microsecond: 0, 3 * time.Hour: 1} {
		var log strings.Builder
		behind := newWorld(t, slog.New(slog.NewTextHandler(&log, nil)), hourly("a"))
		clock := behind.clock.Now().Add(apart)
		ahead := core.Must(core.Must(swapstore.New(behind.swapper, swapstore.Config{Clock: func() time.Time { return clock }})).Open("l", behind.rules))
		for range 3 {
			if err := storetest.Do(t.Context(), ahead, core.OpTake, behind.batch(1)); err != nil {
				t.Fatal(err)
			}
			behind.do(core.OpTake, 1)
		}
		if got := strings.Count(log.String(), "limiter=l name="+stored("a")+" advice=\"set the clocks"); got != want {
			t.Errorf("%v apart: logged %d times, want %d:\n%s", apart, got, want, &log)
		}
	}
}
