package resilient_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// An error that is no failure of the store is no success either: a store that
// is down stays down until it has completed an operation.
func TestAnErrorThatIsNotTheStoresDoesNotCloseTheCircuit(t *testing.T) {
	for name, err := range map[string]error{"contended": core.ErrContended, "damaged": core.ErrDamaged, "closed": core.ErrClosed, "configuration": core.ErrConfig} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var changes []resilient.Change
				f := newFlaky(t, nil)
				s := newStore(t, f, resilient.Config{Failures: 1, Retry: time.Second, OnChange: func(c resilient.Change) { changes = append(changes, c) }})
				l := newLimiter(t, s, 1000)
				f.fail(errGone)
				_, _ = take(l)
				f.fail(fmt.Errorf("wrapped: %w", err))
				for range 3 {
					time.Sleep(2 * time.Second)
					asked := f.asked.Load()
					_, _ = take(l)
					if f.asked.Load() == asked {
						t.Error("the store is not tried")
					}
					if s.Up() || len(changes) != 1 {
						t.Fatalf("up %v after an error, changes %+v", s.Up(), changes)
					}
				}
				f.fail(nil)
				time.Sleep(2 * time.Second)
				if d, err := take(l); err != nil || d.Degraded || !s.Up() || len(changes) != 2 {
					t.Errorf("%v, %v; up %v, changes %+v", d, err, s.Up(), changes)
				}
			})
		})
	}
}

// An error that is not the store's fault does not end a row of failures.
func TestAnErrorThatIsNotTheStoresEndsNoRowOfFailures(t *testing.T) {
	f := newFlaky(t, nil)
	s := newStore(t, f, resilient.Config{Failures: 3, Timeout: patience})
	l := newLimiter(t, s, 1000)
	for _, err := range []error{errGone, core.ErrContended, errGone, core.ErrDamaged, errGone} {
		if !s.Up() {
			t.Fatal("given up too early")
		}
		f.fail(err)
		_, _ = take(l)
	}
	if s.Up() {
		t.Error("three failures with other errors between: the store has not been given up")
	}
}

// With ModeOpen, hits admitted during an outage were charged nowhere: their
// refund gives nothing back.
func TestARefundOfWhatWasNeverChargedGivesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{Failures: 1, Meanwhile: resilient.ModeOpen}), 5)
		for range 3 {
			_, _ = take(l)
		}
		f.fail(errGone)
		free, err := take(l)
		if err != nil || !free.Degraded || !free.Allowed {
			t.Fatalf("%v, %v", free, err)
		}
		f.fail(nil)
		time.Sleep(2 * time.Second)
		asked := f.asked.Load()
		if err := l.Adjust(context.Background(), free, 0); err != nil {
			t.Fatal(err)
		}
		if f.asked.Load() != asked {
			t.Error("the store was told of the refund")
		}
		if d, _ := l.Peek(context.Background(), 0, core.Hit{Rule: "user", Key: "alice"}); d.Degraded || d.Remaining != 2 {
			t.Errorf("%d left of 5 after 3 hits, degraded %v", d.Remaining, d.Degraded)
		}
	})
}

// A refund finds its hit among those of this process although the store's clock
// runs otherwise, and has been set since by less than the slack.
func TestARefundFindsItsHitWhateverTheStoresClockIs(t *testing.T) {
	for _, apart := range []time.Duration{0, -time.Hour, time.Hour} {
		for _, step := range []time.Duration{0, 150 * time.Millisecond, -150 * time.Millisecond} {
			t.Run(fmt.Sprint(apart, step), func(t *testing.T) {
				here, there := storetest.NewClock(time.Unix(1_764_000_000, 0)), storetest.NewClock(time.Unix(1_764_000_000, 0).Add(apart))
				f := newFlaky(t, there.Now)
				l := core.Must(core.New(core.Config{
					Name: "l", Store: newStore(t, f, resilient.Config{Failures: 1, Timeout: patience, Clock: here.Now}),
					Rules: []core.Rule{{Name: "user", Limits: []core.Limit{{Quota: 5, Window: 24 * time.Hour, Algorithm: core.FixedWindow}}}},
				}))
				first, err := take(l)
				if err != nil || first.Degraded {
					t.Fatalf("%v, %v", first, err)
				}
				there.Advance(step)
				for _, c := range []*storetest.Clock{here, there} {
					c.Advance(time.Second)
				}
				if _, err := take(l); err != nil {
					t.Fatal(err)
				}
				if err := l.Adjust(context.Background(), first, 0); err != nil {
					t.Fatal(err)
				}
				f.fail(errGone)
				if d, err := take(l); err != nil || !d.Degraded || d.Remaining != 3 {
					t.Errorf("in the process %d are left of 5 after 3 hits and a refund, degraded %v, %v", d.Remaining, d.Degraded, err)
				}
			})
		}
	}
}

// A refund from before a new window of this process began takes nothing out of
// that window.
func TestARefundOfAnEarlierWindowTakesNothingFromALaterOne(t *testing.T) {
	here, there := storetest.NewClock(time.Unix(1_764_000_000, 0)), storetest.NewClock(time.Unix(1_764_000_000, 0).Add(time.Hour))
	f := newFlaky(t, there.Now)
	l := core.Must(core.New(core.Config{
		Name: "l", Store: newStore(t, f, resilient.Config{Failures: 1, Timeout: patience, Clock: here.Now}),
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{{Quota: 5, Window: time.Minute, Algorithm: core.FixedWindow}}}},
	}))
	first, err := take(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*storetest.Clock{here, there} {
		c.Advance(2 * time.Minute)
	}
	for range 2 {
		_, _ = take(l)
	}
	if err := l.Adjust(context.Background(), first, 0); err != nil {
		t.Fatal(err)
	}
	f.fail(errGone)
	if d, err := take(l); err != nil || !d.Degraded || d.Remaining != 2 {
		t.Errorf("in the process %d are left of 5 after 3 hits of this window, degraded %v, %v", d.Remaining, d.Degraded, err)
	}
}

// A panic of OnChange is that of the request that has found the change out. The
// next change is reported all the same, and nothing stays locked.
func TestAPanicOfOnChangeLosesNoLaterChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ups []bool
		f := newFlaky(t, nil)
		// Open owes nothing, so that requests try the store.
		s := newStore(t, f, resilient.Config{Meanwhile: resilient.ModeOpen, Failures: 1, OnChange: func(c resilient.Change) {
			ups = append(ups, c.Up)
			panic("fault of the application")
		}})
		l := newLimiter(t, s, 100)
		panicked := func() (v any) {
			defer func() { v = recover() }()
			_, _ = take(l)
			return nil
		}
		f.fail(errGone)
		if panicked() == nil {
			t.Error("the request that has found the outage out did not panic")
		}
		if v := panicked(); v != nil || s.Up() {
			t.Errorf("the next request: panic %v, up %v", v, s.Up())
		}
		f.fail(nil)
		time.Sleep(2 * time.Second)
		if panicked() == nil {
			t.Error("the request that has found the recovery out did not panic")
		}
		if fmt.Sprint(ups) != "[false true]" || !s.Up() {
			t.Errorf("reported %v, up %v", ups, s.Up())
		}
	})
}

// A request may try two servers at once. If OnChange panics when it is told of the first one, the circuit of the
// second one has been told all the same: that server is asked again.
func TestAPanicOfOnChangeLosesNoProbeOfAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &spread{Store: core.Must(core.NewMemory(core.MemoryConfig{})), asked: map[string]int{}}
		// Open owes nothing, so that nothing but requests tries the servers.
		s := newStore(t, inner, resilient.Config{Meanwhile: resilient.ModeOpen, Failures: 1, OnChange: func(resilient.Change) { panic("fault of the application") }})
		l := core.Must(core.New(core.Config{Name: "l", Store: s, Rules: []core.Rule{
			{Name: "x", Limits: []core.Limit{core.PerHour(100)}},
			{Name: "y", Limits: []core.Limit{core.PerHour(100)}},
		}}))
		takes := func(hits ...core.Hit) (degraded bool) {
			defer func() { _ = recover() }()
			d, err := l.Take(context.Background(), 1, hits...)
			return err != nil || d.Degraded
		}
		a, b := core.Hit{Rule: "x", Key: "A1"}, core.Hit{Rule: "y", Key: "B1"}
		for _, hit := range []core.Hit{a, b} {
			server := hit.Key[:1]
			inner.down.Store(&server)
			takes(hit)
		}
		inner.down.Store(nil)
		time.Sleep(2 * time.Second)
		takes(a, b)
		for _, hit := range []core.Hit{a, b} {
			if takes(hit) {
				t.Errorf("%s: decided without the server, want by it: it answers again", hit.Key)
			}
		}
		if !s.Up() {
			t.Error("a server is down, want none")
		}
	})
}

// A burst is divided among the instances as a quota is. With ModeOpen, a
// decision reports that the whole burst is left.
func TestBurstsWhileTheStoreDoesNotAnswer(t *testing.T) {
	bucket := core.Limit{Quota: 60, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 9}
	for _, c := range []struct {
		config resilient.Config
		want   int64 // of 20 takes
		left   int64 // after the first one
	}{
		{resilient.Config{Instances: 2}, 5, 4},
		{resilient.Config{Instances: 4}, 3, 2},
		{resilient.Config{Meanwhile: resilient.ModeOpen}, 20, 9},
	} {
		f := newFlaky(t, nil)
		f.fail(errGone)
		c.config.Clock = storetest.NewClock(time.Unix(1_764_000_000, 0)).Now
		l := core.Must(core.New(core.Config{Name: "l", Store: newStore(t, f, c.config), Rules: []core.Rule{
			{Name: "user", Limits: []core.Limit{bucket}},
		}}))
		admitted := int64(0)
		for i := range 20 {
			d, err := take(l)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 && d.Remaining != c.left {
				t.Errorf("%v, %d instances: %d left after the first take, want %d", c.config.Meanwhile, c.config.Instances, d.Remaining, c.left)
			}
			if d.Allowed {
				admitted++
			}
		}
		if admitted != c.want {
			t.Errorf("%v, %d instances: %d of 20 admitted, want %d", c.config.Meanwhile, c.config.Instances, admitted, c.want)
		}
	}
}
