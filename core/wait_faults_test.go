package core_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A head whose store panics leaves the line to the next one.
func TestAHeadThatPanicsLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		s.before = func(*core.Batch) {
			if s.takes.Load() == 3 { // the first of a head
				panic("the store")
			}
		}
		config := patient(time.Minute, core.PerSecond(1))
		config.Store = s
		l, c := newLimiter(t, config, nil), newCrowd()
		panicked := 0
		for i := range 4 {
			c.come(i, func() (d core.Decision, err error) {
				defer func() {
					if recover() != nil {
						panicked++
					}
				}()
				return l.Check(&request{}), nil
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if panicked != 1 || len(c.allowed()) != 3 || c.allowed()[1] != 2 || c.allowed()[2] != 3 || l.Stats().Waiting != 0 {
			t.Errorf("%d panics, %v allowed, %+v", panicked, c.allowed(), l.Stats())
		}
	})
}

// The store fails while requests wait: each of them learns it at its turn.
func TestRequestsInLineLearnThatTheStoreHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := newAsked(), &lines{}
		config := patient(time.Minute, core.PerSecond(1))
		config.Store, config.Log = s, log.logger()
		l, c := newLimiter(t, config, nil), newCrowd()
		for i := range 3 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		c.come(3, func() (core.Decision, error) {
			return l.Wait(context.Background(), 1, core.Hit{Rule: "r", Key: "k"})
		})
		if err := s.Store.(*core.Memory).Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, i := range []int{1, 2, 3} {
			if d, _ := c.of(i); d.Reason != core.ReasonFailed || !errors.Is(d.Err, core.ErrClosed) || d.Waited() <= 0 {
				t.Errorf("request %d: %v, %v", i, d, d.Err)
			}
		}
		if d, _ := c.of(3); !errors.Is(d.err, core.ErrClosed) {
			t.Errorf("Wait: %v", d.err)
		}
	})
}

// Requests that wait are decided by the configuration with which they began. Later ones stand
// behind them if the limits are the same, and in a line of their own if not.
func TestReconfigureWhileRequestsWait(t *testing.T) {
	for _, quota := range []int64{1, 100} {
		synctest.Test(t, func(t *testing.T) {
			l, c := newLimiter(t, patient(time.Minute, core.PerSecond(1)), nil), newCrowd()
			come := func(i int) {
				c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
			}
			for i := range 3 {
				come(i)
			}
			next := patient(30*time.Second, core.PerSecond(quota))
			if err := l.Reconfigure(next); err != nil {
				t.Fatal(err)
			}
			for i := 3; i < 6; i++ {
				come(i)
			}
			atOnce := len(c.allowed())
			time.Sleep(time.Minute)
			synctest.Wait()
			if quota == 1 {
				c.inOrder(t, 6)
			} else if atOnce != 4 || len(c.allowed()) != 6 || c.at(1) > c.at(2) || c.at(1) < time.Second {
				t.Errorf("%d were allowed at once, all of them are %v", atOnce, c.allowed())
			}
			if d, _ := c.of(2); d.Limit().Quota != 1 {
				t.Errorf("a request that waited was decided with the quota %d", d.Limit().Quota)
			}
		})
	}
}

// A slot that is given back lets in those that wait for it by either configuration.
func TestReconfigureWhileRequestsWaitForSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(time.Minute, core.InFlight(1)), nil), newCrowd()
		first := l.Check(&request{})
		come := func(i int) {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		come(0)
		if err := l.Reconfigure(patient(time.Minute, core.InFlight(3))); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < 5; i++ {
			come(i)
		}
		if got := c.allowed(); !slices.Equal(got, []int{1, 2}) {
			t.Fatalf("%v are let in at once, want two", got)
		}
		l.Settle(&request{}, first, core.Outcome{})
		synctest.Wait()
		if got := c.allowed(); !slices.Equal(got, []int{1, 2, 3}) || c.at(3) != 0 {
			t.Errorf("%v are let in when a slot is free", got)
		}
		for _, i := range []int{1, 2, 3, 4} { // request 0 needs all slots to be free
			if got := c.allowed(); slices.Contains(got, 0) {
				t.Errorf("%v are let in before request %d has ended", got, i)
			}
			d, _ := c.of(i)
			l.Settle(&request{}, d.Decision, core.Outcome{})
			synctest.Wait()
		}
		if got := c.allowed(); !slices.Equal(got, []int{1, 2, 3, 4, 0}) || c.at(0) != 0 {
			t.Errorf("%v are let in when all slots are free", got)
		}
	})
}

// The rules that deny decide whether a request waits, and how long.
func TestARuleHasAMaxWaitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Config{MaxWait: time.Second, Rules: []core.Rule{
			{Name: "short", Key: methodKey("short"), Limits: []core.Limit{core.PerSecond(1)}},
			{Name: "long", Key: methodKey("long"), Limits: []core.Limit{{Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow}}, MaxWait: time.Minute},
			{Name: "other", Key: methodKey("other"), Limits: []core.Limit{{Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow}}},
		}}, nil)
		for range 2 {
			for _, row := range []struct {
				key     string
				allowed bool
			}{{"long", true}, {"other", false}} {
				l.Check(&request{method: row.key})
				begun := time.Now()
				d := l.Check(&request{method: row.key})
				if d.Allowed != row.allowed || d.Waited() != time.Since(begun) || !row.allowed && d.Waited() != 0 {
					t.Errorf("%s: %v after %v", row.key, d, time.Since(begun))
				}
			}
			time.Sleep(time.Minute)
		}
	})
}

// methodKey applies to requests of a method.
func methodKey(method string) core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		if r.Method() != method {
			return dst, core.SkipRule
		}
		return append(dst, "k"...), nil
	}
}

// A request that is denied by a second key goes to that key's line, and holds nobody up in
// the line that it leaves.
func TestARequestWithTwoKeysHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "ip", Limits: []core.Limit{{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow}}},
			{Name: "user", Limits: []core.Limit{{Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow}}},
		}}, nil), newCrowd()
		wait := func(i int, hits ...core.Hit) {
			c.come(i, func() (core.Decision, error) { return l.Wait(context.Background(), 1, hits...) })
		}
		ip := func(k string) core.Hit { return core.Hit{Rule: "ip", Key: k} }
		user := func(k string) core.Hit { return core.Hit{Rule: "user", Key: k} }
		wait(0, user("u"))
		wait(1, ip("a"))
		wait(2, ip("a"), user("u")) // waits for the user
		wait(3, ip("a"))
		wait(4, ip("a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, want := range []time.Duration{0, 0, 10 * time.Second, time.Second, 2 * time.Second} {
			if d, _ := c.of(i); d.at != want || d.err != nil {
				t.Errorf("request %d was allowed at %v, want %v: %v", i, d.at, want, d.err)
			}
		}
	})
}

// Requests that need their body wait too, and a body is not read if waiting does not help.
func TestRequestsThatNeedTheirBodyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		field := func(dst []byte, r core.Request) ([]byte, error) {
			b, err := r.Body(10)
			return append(dst, b...), err
		}
		l := newLimiter(t, core.Config{MaxWait: 3 * time.Second, MaxWaiters: 2, Rules: []core.Rule{
			{Name: "ip", Key: static("k"), Limits: []core.Limit{{Quota: 1, Window: 2 * time.Second, Algorithm: core.FixedWindow}}},
			{Name: "name", Key: field, Limits: []core.Limit{core.PerHour(100)}},
		}}, nil)
		c := newCrowd()
		var rs [3]*request
		for i := range rs {
			rs[i] = &request{body: "alice"}
			c.come(i, func() (core.Decision, error) { return l.Check(rs[i]), nil })
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if d, _ := c.of(1); !d.Allowed || d.Waited() != 2*time.Second || rs[1].reads == 0 {
			t.Errorf("%v after %v, body read %d times", d, d.Waited(), rs[1].reads)
		}
		if d, _ := c.of(2); d.Allowed {
			t.Errorf("%v after %v", d, d.Waited())
		}
		if err := l.Reconfigure(core.Config{MaxWait: time.Second, Rules: []core.Rule{
			{Name: "ip", Key: static("k"), Limits: []core.Limit{{Quota: 1, Window: 2 * time.Second, Algorithm: core.FixedWindow}}},
			{Name: "name", Key: field, Limits: []core.Limit{core.PerHour(100)}},
		}}); err != nil {
			t.Fatal(err)
		}
		l.Check(&request{body: "alice"})
		r := &request{body: "alice"}
		if d := l.Check(r); d.Allowed || d.Waited() != 0 || r.reads != 0 {
			t.Errorf("%v after %v, body read %d times", d, d.Waited(), r.reads)
		}
	})
}

// A dry run makes nobody wait.
func TestADryRunDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := patient(time.Minute, core.PerSecond(1))
		config.DryRun = true
		l := newLimiter(t, config, nil)
		for range 3 {
			if d := l.Check(&request{}); !d.Allowed || d.Waited() != 0 {
				t.Errorf("%v", d)
			}
			if d, err := l.Wait(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); !d.Allowed || d.Waited() != 0 || err != nil {
				t.Errorf("%v, %v", d, err)
			}
		}
	})
}
