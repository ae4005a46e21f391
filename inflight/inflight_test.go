package inflight_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

func TestConfigurationsThatCannotBe(t *testing.T) {
	for want, c := range map[string]inflight.Config{
		"Max: 0: must be": {Key: byHeader},
		"Max: 1000001":    {Max: inflight.MaxSlots + 1},
		"Lease: 999ms: must be from 1s to 1h0m0s, or 0 for 30s": {Max: 1, Lease: 999 * time.Millisecond},
		"Lease: 1h0m0.001s": {Max: 1, Lease: time.Hour + time.Millisecond},
		`Name: ""`:          {Max: 1, Store: newMemory()},
		`Name: "a b"`:       {Max: 1, Name: "a b"},
		"MaxWait: -1ns":     {Max: 1, MaxWait: -1},
	} {
		if _, err := inflight.New(c); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
	}
	l := newLimiter(t, inflight.Config{Max: 1})
	for _, c := range []inflight.Config{{}, {Max: 1, MaxWait: -1}} {
		if err := l.Reconfigure(c); !errors.Is(err, core.ErrConfig) || l.Name() != "slots" {
			t.Error(l.Name(), err)
		}
	}
	l = core.Must(inflight.New(inflight.Config{Max: 1}))
	_ = l.Close()
	if _, _, err := l.Acquire(t.Context(), "k"); l.Name() != "default" || !strings.Contains(fmt.Sprint(err), `limiter "default"`) {
		t.Errorf("%v, name %q", err, l.Name())
	}
	for _, lease := range []time.Duration{inflight.MinLease, inflight.MaxLease} {
		newLimiter(t, inflight.Config{Max: 1, Lease: lease})
	}
}

// each runs a test in the process and with a store.
func each(t *testing.T, test func(t *testing.T, c inflight.Config)) {
	t.Run("in the process", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, inflight.Config{}) })
	})
	t.Run("with a store", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			test(t, inflight.Config{Store: m})
			if m.held() != 0 {
				t.Errorf("the store counts %d slots in the end", m.held())
			}
		})
	})
}

// free are hooks that name a cost of 0. A request takes one slot all the same.
type free struct{ core.DefaultHooks }

func (free) Cost(core.Request) (int64, error) { return 0, nil }

func TestAtMostMaxOfEachKey(t *testing.T) {
	each(t, func(t *testing.T, c inflight.Config) {
		c.Max, c.Hooks = 2, free{}
		l := newLimiter(t, c)
		defer l.Close() //nolint:errcheck // nil
		var all []core.Decision
		for i := range 3 {
			d := l.Check(request(t.Context(), "a"))
			if d.Allowed != (i < 2) || d.Remaining != int64(max(0, 1-i)) {
				t.Errorf("request %d: %v", i, d)
			}
			all = append(all, d)
		}
		if d := l.Check(request(t.Context(), "b")); !d.Allowed {
			t.Error(d)
		} else {
			l.Settle(request(t.Context(), "b"), d, core.Outcome{})
		}
		denial := l.Deny(request(t.Context(), "a"), all[2])
		headers, limit := fmt.Sprint(all[2].AppendHeaders(nil)), all[2].Limit().String()
		if denial.Status != 429 || all[2].NeedsOutcome() || l.Held() != 2 || headers != "[{Cache-Control no-store} {Retry-After 1}]" || limit != "2 per 1ms (fixed_window)" {
			t.Errorf("%+v, %d held, %s, %s", denial, l.Held(), headers, limit)
		}
		for _, d := range all[:2] {
			for range 3 { // a second Settle does nothing
				l.Settle(request(t.Context(), "a"), d, core.Outcome{Panicked: true})
			}
		}
		if l.Held() != 0 {
			t.Errorf("%d held", l.Held())
		}
		for _, hold := range []bool{false, true} { // first one after another, then all at once
			for i := range 500 {
				release, ok, err := l.Acquire(t.Context(), fmt.Sprint(i))
				if !ok || err != nil {
					t.Fatalf("key %d: %v, %v", i, ok, err)
				}
				defer release()
				if !hold {
					release()
				}
			}
		}
	})
}

func TestAcquire(t *testing.T) {
	each(t, func(t *testing.T, c inflight.Config) {
		c.Max, c.MaxWait = 1, time.Minute // Acquire never waits
		l := newLimiter(t, c)
		defer l.Close() //nolint:errcheck // nil
		began := time.Now()
		release, ok, err := l.Acquire(t.Context(), "k")
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		none, ok, err := l.Acquire(t.Context(), "k")
		if none(); ok || err != nil || l.Held() != 1 || time.Since(began) > 0 {
			t.Error(ok, err, l.Held())
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(release)
		}
		all.Wait()
		if l.Held() != 0 {
			t.Errorf("%d held after one release", l.Held())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, ok, err := l.Acquire(t.Context(), "k"); ok || !errors.Is(err, core.ErrClosed) || !errors.Is(err, core.ErrNotCharged) {
			t.Errorf("after Close: %v, %v", ok, err)
		}
	})
}

func TestADryRunDeniesNothingAndHoldsNoMore(t *testing.T) {
	l := newLimiter(t, inflight.Config{Max: 1, DryRun: true})
	r := request(t.Context(), "k")
	first, second := l.Check(r), l.Check(r)
	release, ok, err := l.Acquire(t.Context(), "k")
	if release(); !ok || err != nil || !second.Allowed || !second.DryRun || l.Held() != 1 {
		t.Errorf("%v, %d held; Acquire: %t, %v", second, l.Held(), ok, err)
	}
	l.Settle(r, second, core.Outcome{})
	if l.Settle(r, first, core.Outcome{}); l.Held() != 0 {
		t.Errorf("%d held", l.Held())
	}
}

// Slots stay held when the configuration changes.
func TestReconfigure(t *testing.T) {
	each(t, func(t *testing.T, c inflight.Config) {
		c.Max = 1
		l := newLimiter(t, c)
		defer l.Close() //nolint:errcheck // nil
		r := request(t.Context(), "k")
		first := l.Check(r)
		if err := l.Reconfigure(inflight.Config{Max: 2, Key: byHeader, Name: "a b", Lease: 1}); err != nil {
			t.Fatal(err)
		}
		second, third := l.Check(r), l.Check(r)
		if !first.Allowed || !second.Allowed || third.Allowed {
			t.Errorf("%v; %v; %v", first, second, third)
		}
		l.Settle(r, first, core.Outcome{})
		l.Settle(r, second, core.Outcome{})
	})
}

// Many callers at once are never more than Max.
func TestManyCallers(t *testing.T) {
	l := newLimiter(t, inflight.Config{Max: 5})
	var running, most atomic.Int64
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for range 2000 {
				release, ok, err := l.Acquire(context.Background(), "k")
				if err != nil {
					t.Error(err)
				}
				if ok {
					n := running.Add(1)
					for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
					}
					running.Add(-1)
				}
				release()
			}
		})
	}
	if all.Wait(); most.Load() > 5 || l.Held() != 0 {
		t.Errorf("%d at a time, %d held in the end", most.Load(), l.Held())
	}
}

// Requests wait in order for a slot, and get it when it is released.
func TestRequestsWaitForASlot(t *testing.T) {
	each(t, func(t *testing.T, c inflight.Config) {
		counter := new(hooktest.Counter)
		c.Max, c.MaxWait, c.MaxWaiters, c.Observer = 2, 2*time.Second, 7, counter
		l := newLimiter(t, c)
		defer l.Close() //nolint:errcheck // nil
		const requests = 10
		began := time.Now()
		var at [requests]time.Duration
		var all sync.WaitGroup
		for i := range requests {
			all.Go(func() {
				r := request(t.Context(), "k")
				d := l.Check(r)
				at[i] = time.Since(began)
				if d.Allowed != (i < 6) {
					t.Errorf("request %d: %v at %v", i, d, at[i])
				}
				if d.Allowed {
					time.Sleep(700 * time.Millisecond)
					l.Settle(r, d, core.Outcome{})
				}
			})
			synctest.Wait()
		}
		all.Wait()
		for i := range 6 {
			if want := time.Duration(i/2) * 700 * time.Millisecond; at[i] != want {
				t.Errorf("request %d at %v, want %v", i, at[i], want)
			}
		}
		for i := 6; i < requests; i++ {
			if at[i] > 2*time.Second || i == requests-1 && at[i] > 0 { // there are 7 in line before the last
				t.Errorf("request %d is denied at %v", i, at[i])
			}
		}
		if n := counter.Read(); n.Waiting != 0 || n.Allowed != 6 {
			t.Errorf("%+v", n)
		}
	})
}

// The first in line asks every tenth of a second for a slot that another process holds.
func TestASlotOfAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		here, there := newLimiter(t, inflight.Config{Max: 1, Store: m, MaxWait: time.Minute}), newLimiter(t, inflight.Config{Max: 1, Store: m})
		release, ok, err := there.Acquire(t.Context(), "k")
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		time.AfterFunc(3*time.Second+time.Millisecond, release)
		r := request(t.Context(), "k")
		d := here.Check(r)
		if !d.Allowed || d.Waited != 3100*time.Millisecond {
			t.Errorf("%v after %v", d, d.Waited)
		}
		here.Settle(r, d, core.Outcome{})
	})
}
