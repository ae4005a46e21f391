package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A request is told how long it would have to wait: until those before it, and then itself, have
// been allowed.
func TestTheWaitBehindOthersIsReckoned(t *testing.T) {
	tenth := core.Limit{Quota: 10, Window: time.Second, Algorithm: core.TokenBucket} // a hit every 100 ms
	minute := core.Limit{Quota: 30, Window: time.Minute, Algorithm: core.TokenBucket}
	burst := core.Limit{Quota: 20, Window: time.Second, Algorithm: core.TokenBucket, Burst: 10} // a hit every 50 ms
	buckets := core.Limit{Quota: 10, Window: time.Second, Algorithm: core.BucketedWindow, Precision: 100 * time.Millisecond}
	for _, row := range []struct {
		name   string
		limits []core.Limit
		ahead  []int64 // the costs of those before it
		cost   int64
		want   time.Duration
	}{
		{"one before it", []core.Limit{tenth}, []int64{1}, 1, 200 * time.Millisecond},
		{"less than the quota", []core.Limit{tenth}, []int64{6}, 3, 900 * time.Millisecond},
		{"the whole quota", []core.Limit{tenth}, []int64{9}, 1, time.Second},
		{"more than the quota", []core.Limit{tenth}, []int64{10}, 1, 1100 * time.Millisecond},
		{"some hits of the second quota", []core.Limit{tenth}, []int64{10, 2}, 4, 1600 * time.Millisecond},
		{"as many hits as the quota, by itself", []core.Limit{tenth}, []int64{5}, 10, 1500 * time.Millisecond},
		{"three quotas", []core.Limit{tenth}, []int64{10, 10}, 10, 3 * time.Second},
		{"three bursts", []core.Limit{burst}, []int64{10, 10}, 4, 1200 * time.Millisecond},
		{"two windows of buckets", []core.Limit{buckets}, []int64{10}, 1, 2200 * time.Millisecond},
		{"room in the larger limit", []core.Limit{tenth, minute}, []int64{10, 2}, 4, 1600 * time.Millisecond},
		{"the last hit of the larger limit", []core.Limit{tenth, minute}, []int64{10, 8}, 2, 2 * time.Second},
		// Of the larger limit's 30 hits, 24 are needed. They are taken to come back evenly
		// between 2 s and 20 s from now.
		{"no room in the larger limit", []core.Limit{tenth, minute}, []int64{10, 8}, 6, 16400 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, c := newLimiter(t, patient(0, row.limits...), nil), newCrowd()
				k := core.Hit{Rule: "r", Key: "k"}
				if d, err := l.Take(t.Context(), 10, k); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				for i, cost := range row.ahead {
					c.come(i, func() (core.Decision, error) { return l.Wait(ctx, cost, k) })
				}
				short, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer end()
				d, err := l.Wait(short, row.cost, k)
				if !errors.Is(err, core.ErrWaitTooLong) || d.RetryAfter != row.want || d.Waited() != 0 {
					t.Errorf("%v, %v: a wait of %v after %v, want %v at once", d, err, d.RetryAfter, d.Waited(), row.want)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// What a request in line may cost at most depends on the quota that it brings.
func TestARequestInLineHasTheQuotaThatItBrings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(0, core.Limit{Quota: 2, Window: time.Second, Algorithm: core.FixedWindow}), nil), newCrowd()
		k := core.Hit{Rule: "r", Key: "k"}
		rich := core.Hit{Rule: "r", Key: "k", Quotas: []int64{10}}
		c.come(0, func() (core.Decision, error) { return l.Wait(t.Context(), 2, k) })
		c.come(1, func() (core.Decision, error) { return l.Wait(t.Context(), 1, k) })
		c.come(2, func() (core.Decision, error) { return l.Wait(t.Context(), 5, rich) })
		time.Sleep(time.Minute)
		synctest.Wait()
		c.inOrder(t, 3)
		if c.at(2) != time.Second {
			t.Errorf("allowed at %v, want 1s", c.at(2))
		}
	})
}

// Whoever finds the line full learns how long it would have to wait, and if there are hits,
// which are for those in the line, that it must wait at all.
func TestTheWaitOfAFullLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := patient(time.Minute, core.Limit{Quota: 10, Window: time.Second, Algorithm: core.TokenBucket, Burst: 1})
		config.Store, config.MaxWaiters = s, 1
		l, c := newLimiter(t, config, nil), newCrowd()
		var behind atomic.Bool // request 1 waits
		var d core.Decision
		s.before = func(b *core.Batch) {
			if b.Op == core.OpTake && behind.CompareAndSwap(true, false) { // the hit is there, and request 1 has not taken it
				d = l.Check(&request{})
			}
		}
		c.come(0, func() (core.Decision, error) { return l.Check(&request{}), nil })
		c.come(1, func() (core.Decision, error) { return l.Check(&request{}), nil })
		if d := l.Check(&request{}); d.Allowed || d.RetryAfter != 200*time.Millisecond {
			t.Errorf("behind one that waits: %v, a wait of %v, want 200ms", d, d.RetryAfter)
		}
		behind.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if d.Allowed || d.Reason != core.ReasonOverLimit || d.RetryAfter < time.Millisecond {
			t.Errorf("before one that takes: %v, a wait of %v, want 1ms or more", d, d.RetryAfter)
		}
		c.inOrder(t, 2)
	})
}

// The head of a line for slots asks the store once a second, as another process may have
// released one.
func TestTheHeadOfALineForSlotsAsksOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := patient(10*time.Second, core.InFlight(1))
		config.Store = s
		l, c := newLimiter(t, config, nil), newCrowd()
		first := l.Check(&request{})
		c.come(1, func() (core.Decision, error) { return l.Check(&request{}), nil })
		before := s.takes.Load()
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		if got := s.takes.Load() - before; got != 3 {
			t.Errorf("it has asked %d times in 3.5 s, want 3", got)
		}
		l.Settle(&request{}, first, core.Outcome{Status: 200})
		synctest.Wait()
		if d, done := c.of(1); !done || !d.Allowed || d.at != 3500*time.Millisecond {
			t.Errorf("%t, %v at %v", done, d.Decision, d.at)
		}
	})
}
