package resilient_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// reset resets a key by this instance.
func (i instance) reset(hit core.Hit) {
	i.t.Helper()
	if err := i.Reset(context.Background(), hit); err != nil {
		i.t.Fatal(err)
	}
}

// A Reset by another instance ends the hits of an outage also if it comes before
// the instance that admitted them has seen the key again.
func TestAResetBeforeTheKeyIsSeenAgain(t *testing.T) {
	for name, limits := range map[string][]core.Limit{
		"one limit":    {fixed(5, time.Hour)},
		"three limits": {fixed(5, time.Hour), core.Limit{Quota: 50, Window: 24 * time.Hour}, {Quota: 60, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 30}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := instances(t, 2, resilient.Config{}, rule("user", limits...))
				a, b := all[0], all[1]
				b.link.fail(errRefused)
				if n := b.admitted(20, alice); n != 5 {
					t.Fatalf("%d admitted in the outage, want 5", n)
				}
				b.link.fail(nil)
				time.Sleep(settled)
				a.reset(alice)
				if n := b.admitted(3, alice); n != 3 {
					t.Errorf("%d of 3 admitted by the instance of the outage after the reset", n)
				}
				if n := a.admitted(3, alice); n != 2 {
					t.Errorf("%d admitted by the other instance after that, want the 2 that are left", n)
				}
			})
		})
	}
}

// The hits of many keys and rules are charged in few operations, each key with
// its own number.
func TestTheHitsOfManyKeysAreChargedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{}, rule("user", fixed(100, time.Hour), fixed(500, 24*time.Hour)), rule("addr", fixed(100, time.Hour)))
		a, b := all[0], all[1]
		b.link.fail(errRefused)
		hit := func(i int) core.Hit { return core.Hit{Rule: []string{"user", "addr"}[i%2], Key: fmt.Sprint(i)} }
		const keys = 1000
		for i := range keys {
			b.admitted(1+i%7, hit(i))
		}
		b.link.fail(nil)
		asked := b.link.asked.Load()
		time.Sleep(2 * time.Second)
		for i := range keys {
			d, err := a.Peek(context.Background(), 1, hit(i))
			if want := int64(100 - 1 - i%7); err != nil || d.Remaining != want {
				t.Fatalf("key %d: %d left after the outage, %v, want %d", i, d.Remaining, err, want)
			}
		}
		// For each 32 keys, one operation asks for the counts, and one for each
		// limit charges.
		if n := b.link.asked.Load() - asked; n > 3*(keys/32+1) {
			t.Errorf("the store was asked %d times to be charged with the hits of %d keys", n, keys)
		}
	})
}

// keyed fails for one key with an error that is not the store's fault.
type keyed struct {
	core.Store
	key string
	err error
}

func (k keyed) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := k.Store.Bind(limiter, rules)
	return keyedBound{b, k}, err
}

type keyedBound struct {
	core.Bound
	k keyed
}

func (b keyedBound) Take(ctx context.Context, batch *core.Batch) error {
	for _, it := range batch.Items {
		if string(it.Key) == b.k.key {
			if b.k.err == nil {
				panic("fault of the store")
			}
			return b.k.err
		}
	}
	return b.Bound.Take(ctx, batch)
}

// A key that cannot be charged does not keep the others from being charged, and is
// not tried for ever.
func TestAKeyThatCannotBeCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		limits := []core.Rule{rule("user", fixed(100, time.Hour))}
		store := newStore(t, keyed{f, "bad", fmt.Errorf("wrapped: %w", core.ErrContended)}, resilient.Config{Failures: 1})
		b := instance{core.Must(core.New(core.Config{Name: "l", Store: store, Rules: limits})), t, f}
		f.fail(errRefused)
		keys := []string{"bad"}
		for i := range 100 {
			keys = append(keys, fmt.Sprint(i))
		}
		for _, key := range keys[1:] {
			b.admitted(2, core.Hit{Rule: "user", Key: key})
		}
		b.admitted(2, core.Hit{Rule: "user", Key: "bad"})
		f.fail(nil)
		time.Sleep(2 * time.Second)
		for _, key := range keys[1:] {
			if d, err := b.Peek(context.Background(), 1, core.Hit{Rule: "user", Key: key}); err != nil || d.Degraded || d.Remaining != 98 {
				t.Fatalf("%s: %d left after the outage, degraded %v, %v, want 98", key, d.Remaining, d.Degraded, err)
			}
		}
		asked := f.asked.Load()
		time.Sleep(time.Minute)
		if n := f.asked.Load() - asked; n != 0 {
			t.Errorf("the store was asked %d times in a minute without requests", n)
		}
	})
}

// If others take hits at the same time, a key is charged with what fits, and the
// other keys of the same operation with all.
func TestACharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{}, rule("user", fixed(10, time.Hour)))
		a, b := all[0], all[1]
		hit := func(key string) core.Hit { return core.Hit{Rule: "user", Key: key} }
		b.link.fail(errRefused)
		for _, key := range []string{"x", "y", "z"} {
			b.admitted(6, hit(key))
		}
		b.link.fail(nil)
		b.link.between.Store(func() { a.admitted(7, hit("y")) }) // after the counts are known
		time.Sleep(2 * time.Second)
		for key, want := range map[string]int64{"x": 4, "y": 0, "z": 4} {
			if d, err := a.Peek(context.Background(), 0, hit(key)); err != nil || d.Remaining != want {
				t.Errorf("%s: %d left, %v, want %d", key, d.Remaining, err, want)
			}
		}
	})
}

// Close stops the charges, also while the store does not answer.
func TestCloseStopsTheCharges(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFlaky(t, nil)
			s := newStore(t, f, resilient.Config{Failures: 1, Timeout: time.Hour})
			l := newLimiter(t, s, 10)
			f.fail(errGone)
			_, _ = take(l)
			f.fail(nil)
			if f.hang.Store(hangs); hangs {
				time.Sleep(2 * time.Second)
			}
			asked := f.asked.Load()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			if n := f.asked.Load() - asked; n != 0 {
				t.Errorf("hangs %v: the store was asked %d times after Close", hangs, n)
			}
			_, _ = take(l)
			close(f.end)
			synctest.Wait()
		})
	}
}

// A Reset that comes while the key's hits are being charged waits for the charge,
// so that it is not made after the Reset.
func TestAResetWhileTheHitsAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{Timeout: time.Hour}, rule("user", fixed(5, time.Hour)))
		a, b := all[0], all[1]
		b.link.fail(errRefused)
		b.admitted(5, alice)
		b.link.fail(nil)
		hold := make(chan struct{})
		b.link.between.Store(func() { <-hold })
		time.Sleep(2 * time.Second)
		b.link.between.Store(func() {})
		var wg sync.WaitGroup
		wg.Go(func() { b.reset(alice) })
		synctest.Wait()
		close(hold)
		wg.Wait()
		if n := a.admitted(9, alice); n != 5 {
			t.Errorf("%d admitted after a reset, want 5", n)
		}
	})
}

// A flood of new keys in an outage neither makes the process keep more keys than
// MaxKeys, nor gives a key that has used up its quota a fresh one.
func TestAFloodOfKeysInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{MaxKeys: 2000}, rule("user", fixed(10, time.Hour)))
		a, b := all[0], all[1]
		b.link.fail(errRefused)
		for range 3 {
			b.admitted(11, alice)
			for i := range 5000 {
				b.admitted(1, core.Hit{Rule: "user", Key: fmt.Sprint(i)})
			}
		}
		b.link.fail(nil)
		time.Sleep(5 * time.Second)
		if n := a.admitted(3, alice); n != 0 {
			t.Errorf("%d admitted after the outage, want 0", n)
		}
		charged := 0
		for i := range 5000 {
			d, err := a.Peek(context.Background(), 0, core.Hit{Rule: "user", Key: fmt.Sprint(i)})
			if err != nil {
				t.Fatal(err)
			}
			if d.Remaining < 10 {
				charged++
			}
		}
		if charged < 500 || charged > 2000 {
			t.Errorf("the hits of %d keys were charged, want many of MaxKeys' 2000", charged)
		}
	})
}

// The hits of a very long key are charged with the next request for it.
func TestTheHitsOfAVeryLongKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{}, rule("user", fixed(10, time.Hour)))
		a, b := all[0], all[1]
		long := core.Hit{Rule: "user", Key: strings.Repeat("k", 10_000)}
		b.link.fail(errRefused)
		b.admitted(8, long)
		b.link.fail(nil)
		time.Sleep(2 * time.Second)
		if n := b.admitted(1, alice) + b.admitted(1, long) + a.admitted(5, long); n != 3 {
			t.Errorf("%d admitted after the outage, want 1 of another key and the 2 that are left", n)
		}
	})
}

// A rule that is gone when the store answers again owes nothing, and one that has
// moved is charged under its name.
func TestHitsOfARuleThatHasMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user, addr := rule("user", fixed(10, time.Hour)), rule("addr", fixed(10, time.Hour))
		all := instances(t, 2, resilient.Config{}, user, addr)
		a, b := all[0], all[1]
		other := core.Hit{Rule: "addr", Key: "alice"}
		b.link.fail(errRefused)
		b.admitted(3, alice)
		b.admitted(4, other)
		if err := b.Reconfigure(core.Config{Rules: []core.Rule{addr}}); err != nil {
			t.Fatal(err)
		}
		b.link.fail(nil)
		time.Sleep(2 * time.Second)
		if n := a.admitted(20, other); n != 6 {
			t.Errorf("%d admitted of the rule that has moved, want 6", n)
		}
		if n := a.admitted(20, alice); n != 10 {
			t.Errorf("%d admitted of the rule that is gone, want 10", n)
		}
	})
}
