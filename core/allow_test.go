package core_test

import (
	"testing"
	"testing/synctest"

	"github.com/floodgate-go/floodgate/core"
)

func TestAllowWithoutHitsIsTrue(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
	if !l.Allow(t.Context()) {
		t.Error("denied")
	}
}

// What keeps Allow from deciding is logged, as nobody else hears of it.
func TestAllowDeniesAndLogsIfItCannotDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s := &lines{}, newCounting()
		l := newLimiter(t, core.Config{Name: "api", Store: s, Log: log.logger(), DryRun: true, Rules: []core.Rule{
			{Name: "user", Limits: []core.Limit{core.PerMinute(100)}},
		}}, nil)
		for range 2 { // one line a second
			if l.Allow(t.Context(), core.Hit{Rule: "usr", Key: "alice"}) {
				t.Error("a rule that does not exist allows")
			}
		}
		wantLines(t, log, `level=ERROR msg="floodgate: a call failed" limiter=api operation=allow error="limiter \"api\", rule \"usr\": floodgate: unknown rule: the limiter has \"user\""`)
		s.fault = errFault
		if l.Allow(t.Context(), core.Hit{Rule: "user", Key: "alice"}) {
			t.Error("a store that fails allows")
		}
		wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=take rule=user error="dial tcp 10.1.2.3:6379: connection refused"`)
		if got := l.Stats().Failed; got != 3 {
			t.Errorf("%d failures are counted, want 3", got)
		}
	})
}

func TestAllowOfAClosedMemoryIsFalse(t *testing.T) {
	log, m := &lines{}, core.Must(core.NewMemory(core.MemoryConfig{}))
	l := newLimiter(t, core.Config{Name: "api", Store: m, Log: log.logger(), Rules: []core.Rule{
		{Name: "user", Limits: []core.Limit{core.PerMinute(100)}},
	}}, nil)
	hit := core.Hit{Rule: "user", Key: "alice"}
	l.Allow(t.Context(), hit)
	if l.Allow(t.Context(), core.Hit{Rule: "usr", Key: "alice"}) {
		t.Error("a rule that does not exist allows")
	}
	log.take()
	for _, want := range []bool{true, true, false} {
		if !want {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if got := l.Allow(t.Context(), hit); got != want {
			t.Errorf("Allow is %t, want %t", got, want)
		}
	}
	wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=take rule=user error="in-process counters: floodgate: store is closed"`)
}

// Beside an observer, Allow keeps to all that a hit says.
func TestAllowBesideAnObserver(t *testing.T) {
	w := &watcher{}
	l := newLimiter(t, core.Config{Observer: w, Log: (&lines{}).logger(), Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(2)}}}}, newClock())
	for i, row := range []struct {
		hit  core.Hit
		want bool
	}{
		{core.Hit{Rule: "r", Key: "k"}, true}, {core.Hit{Rule: "r", Key: "k"}, true}, {core.Hit{Rule: "r", Key: "k"}, false},
		{core.Hit{Rule: "r", Key: "k", Extra: "x"}, true},
		{core.Hit{Rule: "r", Key: "k", Quotas: []int64{3}}, true}, {core.Hit{Rule: "r", Key: "k", Quotas: []int64{3}}, false},
		{core.Hit{Rule: "no", Key: "k"}, false},
	} {
		if got := l.Allow(t.Context(), row.hit); got != row.want {
			t.Errorf("%d: %+v: Allow is %t, want %t", i, row.hit, got, row.want)
		}
	}
	if got := len(w.take()); got != 7 {
		t.Errorf("%d decisions were observed, want 7", got)
	}
}
