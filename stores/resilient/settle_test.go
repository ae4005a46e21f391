package resilient_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// shared is a server's counters as several instances use them: each binds the
// limiter.
type shared struct {
	core.Store
	mu    sync.Mutex
	bound core.Bound
}

func (s *shared) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bound == nil {
		var err error
		if s.bound, err = s.Store.Bind(limiter, rules); err != nil {
			return nil, err
		}
	}
	return s.bound, nil
}

// errRefused is a failure before anything was sent.
var errRefused = &net.OpError{Op: "dial", Err: errors.New("connection refused")}

// instance is one of several processes that share a server.
type instance struct {
	*core.Limiter
	t    *testing.T
	link *flaky
}

// instances returns processes that share one server. Their circuits open after
// one failure.
func instances(t *testing.T, n int, c resilient.Config, rules ...core.Rule) (all []instance) {
	server := &shared{Store: core.Must(swapstore.New(&values{all: map[string]swapstore.Value{}}, swapstore.Config{}))}
	for range n {
		link := &flaky{Store: server, end: make(chan struct{})}
		c.Failures = max(c.Failures, 1)
		l := core.Must(core.New(core.Config{Name: "l", Store: newStore(t, link, c), Rules: rules}))
		all = append(all, instance{l, t, link})
	}
	return all
}

func rule(name string, limits ...core.Limit) core.Rule {
	return core.Rule{Name: name, Limits: limits}
}

// admitted returns how many of n hits are admitted.
func (i instance) admitted(n int, hits ...core.Hit) (count int) {
	i.t.Helper()
	for range n {
		d, err := i.Take(context.Background(), 1, hits...)
		if err != nil {
			i.t.Fatal(err)
		}
		if d.Allowed {
			count++
		}
	}
	return count
}

func fixed(quota int64, window time.Duration) core.Limit {
	return core.Limit{Quota: quota, Window: window, Algorithm: core.FixedWindow}
}

var alice = core.Hit{Rule: "user", Key: "alice"}

// After an outage a Reset by one instance reaches the instance that admitted the
// hits.
func TestAResetByAnotherInstanceAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{}, rule("user", fixed(5, time.Hour), fixed(50, 24*time.Hour)))
		a, b := all[0], all[1]
		a.link.fail(errRefused)
		if n := a.admitted(20, alice); n != 5 {
			t.Fatalf("%d admitted in the outage, want 5", n)
		}
		a.link.fail(nil)
		time.Sleep(2 * time.Second)
		if n := a.admitted(3, alice) + b.admitted(3, alice); n != 0 {
			t.Fatalf("%d admitted after the outage, want 0", n)
		}
		if err := b.Reset(context.Background(), alice); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := a.admitted(3, alice); n != 3 {
			t.Errorf("%d of 3 admitted by the instance of the outage a second after a reset by another", n)
		}
		if n := b.admitted(3, alice); n != 2 {
			t.Errorf("%d admitted by the other instance after that, want the 2 that are left", n)
		}
	})
}

// Each instance charges its own hits of an outage, once, and what does not fit
// uses the quota up.
func TestEachInstanceChargesItsHitsOfTheOutage(t *testing.T) {
	for name, limit := range map[string]core.Limit{
		"sliding":  core.PerHour(20),
		"fixed":    fixed(20, time.Hour),
		"log":      {Quota: 20, Window: time.Hour, Algorithm: core.SlidingLog},
		"token":    {Quota: 20, Window: time.Hour, Algorithm: core.TokenBucket},
		"bucketed": {Quota: 20, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
	} {
		for _, row := range []struct{ each, left int }{{3, 11}, {5, 5}, {8, 0}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					all := instances(t, 3, resilient.Config{}, rule("user", limit))
					for _, i := range all {
						i.link.fail(errRefused)
						if n := i.admitted(row.each, alice); n != row.each {
							t.Fatalf("%d admitted in the outage, want %d", n, row.each)
						}
						i.link.fail(nil)
					}
					time.Sleep(2 * time.Second)
					for _, i := range all { // a peek charges them too
						if _, err := i.Peek(context.Background(), 1, alice); err != nil {
							t.Fatal(err)
						}
					}
					left := 0
					for range 20 {
						for _, i := range all {
							left += i.admitted(1, alice)
						}
					}
					if left != row.left {
						t.Errorf("%d each in the outage: %d admitted after it, want %d", row.each, left, row.left)
					}
				})
			})
		}
	}
}

// A long limit is charged with all hits of the outage, a short one only with
// those that still count in it.
func TestHitsOfALongOutageAreChargedByLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := instances(t, 1, resilient.Config{}, rule("user", fixed(5, time.Minute), fixed(30, 24*time.Hour)))[0]
		a.link.fail(errRefused)
		for range 5 {
			if n := a.admitted(5, alice); n != 5 {
				t.Fatalf("%d admitted in the outage, want 5", n)
			}
			time.Sleep(time.Minute)
		}
		a.link.fail(nil)
		if n := a.admitted(20, alice); n != 5 {
			t.Errorf("%d admitted after the outage, want the 5 that are left of the day's 30", n)
		}
		time.Sleep(time.Minute)
		if n := a.admitted(20, alice); n != 0 {
			t.Errorf("%d admitted a minute later, want 0", n)
		}
	})
}

// If two keys are taken together, a key that was not in the outage and is below
// its limit reports no wait.
func TestOnlyTheKeyOfTheOutageDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := instances(t, 1, resilient.Config{Instances: 4}, rule("addr", fixed(8, time.Minute)), rule("user", fixed(100, 24*time.Hour)))[0]
		addr := core.Hit{Rule: "addr", Key: "ip"}
		for i := range 26 { // more than this instance's share of the day
			if d, err := a.Take(context.Background(), 1, core.Hit{Rule: "addr", Key: string(rune('a' + i))}, core.Hit{Rule: "user", Key: "alice"}); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		}
		a.link.fail(errRefused)
		a.admitted(2, addr)
		a.link.fail(nil)
		time.Sleep(2 * time.Second)
		a.admitted(1, core.Hit{Rule: "addr", Key: "other"}) // closes the circuit
		// While another request charges the hits, this process decides on the key.
		a.link.hang.Store(true)
		var payer sync.WaitGroup
		payer.Go(func() { a.admitted(1, addr) })
		synctest.Wait()
		a.link.hang.Store(false)
		d, err := a.Take(context.Background(), 1, addr, alice)
		if err != nil || d.RetryAfter > time.Minute {
			t.Errorf("%v, %v: retry after %v, want at most the minute of the address", d, err, d.RetryAfter)
		}
		for l := range d.Limits() {
			if l.Rule == "user" && l.RetryAfter != 0 {
				t.Errorf("the user's limit, which denies nothing, is to be retried after %v", l.RetryAfter)
			}
		}
		close(a.link.end)
		payer.Wait()
		if n := a.admitted(20, addr); n+2 > 8 {
			t.Errorf("%d admitted after the outage and 2 in it, of 8", n)
		}
	})
}

// A store that fails while hits are charged to it is charged at its next answer.
func TestAFailureWhileHitsAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, late := range []bool{false, true} { // whether the charge is made and its answer lost
			a := instances(t, 1, resilient.Config{}, rule("user", fixed(10, time.Hour)))[0]
			a.link.fail(errRefused)
			a.admitted(4, alice)
			time.Sleep(2 * time.Second)
			a.link.late.Store(late)
			if late {
				a.link.fail(nil)
			}
			n := 4 + a.admitted(1, alice)
			a.link.fail(nil)
			a.link.late.Store(false)
			time.Sleep(2 * time.Second)
			if n += a.admitted(20, alice); n != 10 {
				t.Errorf("late %v: %d admitted in an hour, want 10", late, n)
			}
		}
	})
}

// A flood on a key of an outage costs no more operations than any other.
func TestAFloodOnAKeyOfTheOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := instances(t, 1, resilient.Config{}, rule("user", fixed(5, time.Hour)))[0]
		a.link.fail(errRefused)
		a.admitted(5, alice)
		a.link.fail(nil)
		time.Sleep(2 * time.Second)
		asked := a.link.asked.Load()
		for range 100 {
			d, err := a.Take(context.Background(), 1, alice)
			if err != nil || d.Allowed || d.Degraded {
				t.Fatalf("%v, %v: want a denial by the store", d, err)
			}
		}
		if n := a.link.asked.Load() - asked; n > 102 {
			t.Errorf("the store was asked %d times for 100 requests", n)
		}
	})
}
