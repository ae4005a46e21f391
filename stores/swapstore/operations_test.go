package swapstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

func TestAnOperationGivesUpAfterItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, op := range []core.Op{core.OpTake, core.OpCharge, core.OpRefund, core.OpGrant} {
			w := newWorld(t, quiet, hourly("a"))
			w.do(core.OpTake, 1)
			w.at(func(int) error { w.overtake(stored("a")); return nil })
			if err := w.try(op, 1); !errors.Is(err, core.ErrContended) || !errors.Is(err, core.ErrNotCharged) || w.steps != 2*8 {
				t.Errorf("%v: error %v after %d loads and swaps", op, err, w.steps)
			}
		}
	})
}

// The pauses between attempts do not grow without end.
func TestAnOvertakenOperationPausesForMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attempts = 200
		s := newSwapper()
		c := core.Must(core.Must(swapstore.New(s, swapstore.Config{Attempts: attempts})).Open("l", []core.StoreRule{hourly("a")}))
		s.at(func(int) error { s.overtake(stored("a")); return nil })
		begin := time.Now()
		err := storetest.Do(t.Context(), c, core.OpTake, &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 1, Results: make([]core.Result, 1)}}})
		if took := time.Since(begin); !errors.Is(err, core.ErrContended) || took > attempts*12800*time.Microsecond || took < 100*time.Millisecond {
			t.Errorf("%v after %v, want ErrContended after at most 12.8 ms for each of %d attempts", err, took, attempts)
		}
	})
}

// An operation whose caller has hung up is not tried again, and says that it has changed
// nothing.
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
// the caller may try again then.
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
				return row.err
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
		if err == nil || errors.Is(err, core.ErrNotCharged) != row.want {
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
	block(0) // of a key without a value
	taken(true)
	block(time.Hour)
	block(10 * time.Second) // the last one counts
	taken(false)
	if r := there.do(core.OpTake, 1).Items[0].Results[0]; r.RetryAfter != 10*time.Second || r.Remaining != 0 {
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
	block(time.Hour)
	there.do(core.OpReset, 0)
	taken(true)
}

// A take that is denied halfway, because another writer was faster, gives back what it has
// charged.
func TestATakeThatIsDeniedHalfwayIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, quiet, hourly("a"), hourly("hits"), hourly("c"))
		w.at(func(step int) error {
			if step == 4 { // the Swap of the last key
				w.before = nil
				w.do(core.OpCharge, 0, 0, 3)
			}
			return nil
		})
		if b := w.do(core.OpTake, 1, 1, 1); b.Allowed || b.Items[1].Results[0].Remaining != 3 {
			t.Errorf("allowed %v, %+v", b.Allowed, b.Items)
		}
		if got := w.left(); !slices.Equal(got, []int64{3, 3, 0}) {
			t.Errorf("%d are left, want 3, 3 and no hits", got)
		}
	})
}
