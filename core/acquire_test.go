package core_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func inFlight(t testing.TB, n int64, store core.Store) *core.Limiter {
	t.Helper()
	l, err := core.New(core.Config{Name: "api", Store: store, Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.InFlight(n)}}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var ann = core.Hit{Rule: "user", Key: "ann"}

func acquire(t testing.TB, l *core.Limiter, hits ...core.Hit) (core.Decision, func()) {
	t.Helper()
	d, release, err := l.Acquire(t.Context(), hits...)
	if err != nil {
		t.Fatal(err)
	}
	return d, release
}

func TestAcquireTakesASlotUntilItIsReleased(t *testing.T) {
	l := inFlight(t, 2, nil)
	_, first := acquire(t, l, ann)
	_, second := acquire(t, l, ann)
	d, none := acquire(t, l, ann)
	if d.Allowed || d.Reason != core.ReasonOverLimit || d.RetryAfter != time.Second || d.Remaining != 0 || d.MoreAfter != 0 || d.ResetAfter != 0 {
		t.Errorf("the third of two: %+v", d)
	}
	none()
	if d, _ := acquire(t, l, ann); d.Allowed {
		t.Error("the release of a denied Acquire freed a slot")
	}
	first()
	first()
	if d, _ := acquire(t, l, ann); !d.Allowed {
		t.Error("denied after a release")
	}
	first()
	if d, _ := acquire(t, l, ann); d.Allowed {
		t.Error("a release that was called again freed the slot of another")
	}
	second()
	if d, _ := l.Peek(t.Context(), 1, ann); d.Remaining != 1 {
		t.Errorf("%d slots left, want 1", d.Remaining)
	}
}

func TestReleaseMayBeCalledConcurrently(t *testing.T) {
	l := inFlight(t, 3, nil)
	_, release := acquire(t, l, ann)
	acquire(t, l, ann)
	var all sync.WaitGroup
	for range 8 {
		all.Go(release)
	}
	all.Wait()
	if d, _ := l.Peek(t.Context(), 1, ann); d.Remaining != 2 {
		t.Errorf("%d slots left, want 2", d.Remaining)
	}
}

// With a rate beside it, all is taken or nothing, and the hits of the rate stay.
func TestAcquireWithARate(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Limits: []core.Limit{core.InFlight(2), core.PerHour(3)}}}}))
	hit := core.Hit{Rule: "default", Key: "k"}
	_, a := acquire(t, l, hit)
	_, b := acquire(t, l, hit)
	if d, _ := acquire(t, l, hit); d.Allowed || d.Limit().Algorithm != core.Leases {
		t.Errorf("%+v", d)
	}
	a()
	b()
	_, c := acquire(t, l, hit)
	c()
	d, _ := acquire(t, l, hit)
	if d.Allowed || d.Limit().Algorithm == core.Leases {
		t.Errorf("the fourth of three in an hour: %+v", d)
	}
	for s := range d.Limits() {
		if s.Limit.Algorithm == core.Leases && s.Remaining != 2 {
			t.Errorf("%d slots left, want 2: a denied take has taken one", s.Remaining)
		}
	}
}

func TestTakeNeedsAcquire(t *testing.T) {
	l := inFlight(t, 2, nil)
	if _, err := l.Take(t.Context(), 1, ann); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("Take: %v", err)
	}
	if l.Allow(t.Context(), ann) {
		t.Error("Allow: true")
	}
	if d, err := l.Peek(t.Context(), 1, ann); err != nil || d.Remaining != 2 {
		t.Errorf("Peek: %+v, %v", d, err)
	}
	if _, err := l.Take(t.Context(), 0, ann); err != nil {
		t.Errorf("a cost of 0: %v", err)
	}
}

// In the process a slot is held for as long as the request runs, whatever the lease is.
func TestALeaseInTheProcessDoesNotEnd(t *testing.T) {
	clock := newClock()
	l := inFlight(t, 1, core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now})))
	_, release := acquire(t, l, ann)
	clock.advance(100 * core.DefaultLease)
	remaining(t, l, 0, "after 100 leases")
	release()
	remaining(t, l, 1, "after the release")
}

func TestReconfigureKeepsLeases(t *testing.T) {
	l := inFlight(t, 1, nil)
	_, release := acquire(t, l, ann)
	if err := l.Reconfigure(core.Config{Rules: []core.Rule{{Name: "user", Limits: []core.Limit{{Quota: 3, Window: time.Minute, Algorithm: core.Leases}}}}}); err != nil {
		t.Fatal(err)
	}
	remaining(t, l, 2, "after Reconfigure")
	release()
	remaining(t, l, 3, "after the release")
}

func TestAStoreThatCountsNoLeases(t *testing.T) {
	_, err := core.New(core.Config{Store: without(core.OpRelease), Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.InFlight(1)}}}, Name: "api"})
	want := `Rules[0].Limits: "user": in_flight: the store cannot count what is in flight (*core_test.unable)`
	if !errors.Is(err, core.ErrConfig) || err.Error() != "floodgate: configuration: "+want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func remaining(t *testing.T, l *core.Limiter, want int64, when string) {
	t.Helper()
	if d, err := l.Peek(t.Context(), 1, ann); err != nil || d.Remaining != want {
		t.Errorf("%s: %d slots left, want %d (%v)", when, d.Remaining, want, err)
	}
}

// Clearing a key would free the slots of requests that still run.
func TestARuleThatClearsHasNoLimitInFlight(t *testing.T) {
	rule := core.Rule{Name: "r", Limits: []core.Limit{core.PerMinute(5), core.InFlight(2)}}
	if _, err := core.New(core.Config{Rules: []core.Rule{rule}}); err != nil {
		t.Fatal(err)
	}
	rule.Clears = func(core.Request, core.Outcome) bool { return true }
	if _, err := core.New(core.Config{Rules: []core.Rule{rule}}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "rule of its own") {
		t.Error(err)
	}
}

// A rule has one limit of what is in flight, and so has a text.
func TestTwoLimitsInFlightInOneText(t *testing.T) {
	for _, text := range []string{"3 in flight, 5 in flight", "3 in flight, 9/m, 3 in flight lease=10s name=b"} {
		if limits, err := core.ParseLimits(text); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "is given twice: a rule has one") {
			t.Errorf("%q: %v, %v", text, limits, err)
		}
	}
	rule := core.Rule{Name: "r", Limits: []core.Limit{core.InFlight(3), {Quota: 3, Window: time.Minute, Algorithm: core.Leases}}}
	if _, err := core.New(core.Config{Rules: []core.Rule{rule}}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "a rule has one limit of in_flight, and Limits[0] is 3 in flight") {
		t.Errorf("%v", err)
	}
	if limits, err := core.ParseLimits("9/m, 3 in flight"); err != nil || len(limits) != 2 {
		t.Errorf("%v, %v", limits, err)
	}
	if _, err := core.ParseLimits("9"); !strings.Contains(err.Error(), "or 10 in flight") {
		t.Errorf("%v", err)
	}
}

// Each hit has the slots of its own counter, and of the quota that it brings.
func TestAcquireKeepsToTheHit(t *testing.T) {
	l := inFlight(t, 1, nil)
	for range 2 { // the second time, the key is known
		var releases []func()
		for _, row := range []struct {
			hit  core.Hit
			want bool
		}{
			{ann, true}, {ann, false},
			{core.Hit{Rule: "user", Key: "ann", Extra: "x"}, true}, {core.Hit{Rule: "user", Key: "ann", Extra: "x"}, false},
			{core.Hit{Rule: "user", Key: "ann", Quotas: []int64{2}}, true}, {core.Hit{Rule: "user", Key: "ann", Quotas: []int64{2}}, false},
		} {
			d, release := acquire(t, l, row.hit)
			if d.Allowed != row.want {
				t.Errorf("%v: %v, want %t", row.hit, d, row.want)
			}
			releases = append(releases, release)
		}
		for _, release := range releases {
			release()
		}
	}
	if d, release, err := l.Acquire(t.Context(), core.Hit{Rule: "no", Key: "ann"}); !errors.Is(err, core.ErrUnknownRule) || d.Allowed {
		t.Errorf("a rule that does not exist: %v, %v", d, err)
	} else {
		release()
	}
}
