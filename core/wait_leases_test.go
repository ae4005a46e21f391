package core_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A request that waits for a slot gets it when it is released, and not later. Nobody asks the
// store in between.
func TestRequestsWaitForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(2*time.Second, core.InFlight(2)), nil), newCrowd()
		const requests = 10
		for i := range requests {
			c.come(i, func() (core.Decision, error) {
				d := l.Check(&request{})
				if d.Allowed {
					go func() {
						time.Sleep(700 * time.Millisecond) // the handler
						l.Settle(&request{}, d, core.Outcome{Status: 200})
					}()
				}
				return d, nil
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		c.inOrder(t, 6)
		for i := range requests {
			d, _ := c.of(i)
			want := time.Duration(i/2) * 700 * time.Millisecond
			if i >= 6 { // 2.1 s is too long
				want = 2 * time.Second
			}
			if d.at != want || d.Allowed != (i < 6) || d.Waited() != want {
				t.Errorf("request %d: %v at %v, want %v", i, d.Decision, d.at, want)
			}
		}
		if s := l.Stats(); s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A slot that is released just when a request has been denied, and before it is in line, is
// not missed.
func TestASlotThatIsReleasedBeforeTheLineIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := patient(time.Minute, core.InFlight(1))
		config.Store = s
		l := newLimiter(t, config, nil)
		first := l.Check(&request{})
		s.after = func(_ context.Context, b *core.Batch) {
			if !b.Allowed {
				s.after = nil
				l.Settle(&request{}, first, core.Outcome{Status: 200})
			}
		}
		if d := l.Check(&request{}); !d.Allowed || d.Waited() != 0 || s.takes.Load() != 3 {
			t.Errorf("%v after %v, %d takes", d, d.Waited(), s.takes.Load())
		}
	})
}

func TestAClientThatGoesAwayHoldsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(time.Minute, core.InFlight(1)), nil), newCrowd()
		first := l.Check(&request{})
		ctx, cancel := context.WithCancel(t.Context())
		c.come(1, func() (core.Decision, error) { return l.Check(&request{ctx: ctx}), nil })
		c.come(2, func() (core.Decision, error) { return l.Check(&request{}), nil })
		cancel()
		synctest.Wait()
		if d, done := c.of(1); !done || d.Allowed {
			t.Errorf("%t, %v", done, d)
		}
		l.Settle(&request{}, first, core.Outcome{Status: 200})
		synctest.Wait()
		if d, done := c.of(2); !done || !d.Allowed || d.at != 0 {
			t.Errorf("%t, %v", done, d)
		}
	})
}

// The store fails while requests wait for a slot: those behind the head learn it when the head does,
// and not at the end of their time.
func TestAllWhoWaitForASlotLearnThatTheStoreHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := patient(time.Minute, core.InFlight(1))
		s, log := newAsked(), &lines{}
		config.Store, config.Log = s, log.logger()
		l, c := newLimiter(t, config, nil), newCrowd()
		for i := range 5 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		if err := s.Store.(*core.Memory).Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for i := 1; i < 5; i++ {
			if d, _ := c.of(i); !errors.Is(d.Err, core.ErrClosed) || d.at != time.Second {
				t.Errorf("request %d: %v, %v at %v, want 1s", i, d.Decision, d.Err, d.at)
			}
		}
	})
}

func TestWaitTakesNoSlot(t *testing.T) {
	l := newLimiter(t, patient(time.Minute, core.InFlight(1)), nil)
	if _, err := l.Wait(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// The same with a clock that does not stand still: what is left of the request's time is
// never taken to be less than a wait for all of it.
func TestRequestsWaitLessThanASecondForASlot(t *testing.T) {
	for range 10 { // a busy machine may need several
		l := newLimiter(t, patient(900*time.Millisecond, core.InFlight(1)), nil)
		first, second := l.Check(&request{}), make(chan core.Decision, 1)
		go func() { second <- l.Check(&request{}) }()
		for l.Stats().Waiting == 0 && len(second) == 0 {
			runtime.Gosched()
		}
		l.Settle(&request{}, first, core.Outcome{Status: 200})
		if d := <-second; d.Allowed && d.Waited() > 0 {
			return
		}
	}
	t.Error("a request that may wait for 900 ms does not wait for a slot")
}
