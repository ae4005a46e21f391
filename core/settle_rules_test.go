package core_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

var (
	never  = func(core.Request, core.Outcome) bool { return false }
	always = func(core.Request, core.Outcome) bool { return true }
)

// A refund depends on what the Take has said of the same limit: of a token
// bucket, how long it takes to pay the charge off.
func TestASettledRuleIsRefundedByItsOwnResults(t *testing.T) {
	bucket := func(window time.Duration) core.Limit {
		return core.Limit{Quota: 10, Window: window, Algorithm: core.TokenBucket}
	}
	for name, rules := range map[string][]core.Rule{
		"the last of two": {
			{Name: "short", Key: static("k"), Limits: []core.Limit{bucket(10 * time.Millisecond), bucket(20 * time.Millisecond)}},
			{Name: "long", Key: static("k"), Limits: []core.Limit{bucket(time.Hour)}, Counts: never},
		},
		"the first of two": {
			{Name: "long", Key: static("k"), Limits: []core.Limit{bucket(time.Hour)}, Counts: never},
			{Name: "short", Key: static("k"), Limits: []core.Limit{bucket(10 * time.Millisecond)}},
		},
		"the middle of three": {
			{Name: "short", Key: static("k"), Limits: []core.Limit{bucket(10 * time.Millisecond), bucket(20 * time.Millisecond)}},
			{Name: "long", Key: static("k"), Limits: []core.Limit{bucket(time.Hour)}, Counts: never},
			{Name: "counts", Key: static("k"), Limits: []core.Limit{bucket(time.Second)}, Counts: always},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			l := newLimiter(t, core.Config{Rules: rules}, c)
			r := &request{}
			d := l.Check(r)
			c.advance(time.Minute)
			l.Settle(r, d, core.Outcome{Status: 200})
			if got := left(t, l, "long", "k"); got != 10 {
				t.Errorf("%d hits left after the refund, want 10", got)
			}
		})
	}
}

// What is settled is settled once, whether by Settle or by Refund.
func TestADecisionIsSettledOnce(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(10)}, Counts: never}}}, newClock())
	r := &request{}
	for range 5 {
		l.Check(r)
	}
	d := l.Check(r)
	l.Settle(r, d, core.Outcome{})
	l.Settle(r, d, core.Outcome{})
	if err := l.Adjust(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
	if got := left(t, l, "r", "k"); got != 5 {
		t.Errorf("%d hits left, want 5", got)
	}
	d = l.Check(r)
	if err := l.Adjust(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
	l.Settle(r, d, core.Outcome{})
	if got := left(t, l, "r", "k"); got != 5 {
		t.Errorf("%d hits left after a refund and Settle, want 5", got)
	}
}

func TestACounterNamedTwiceIsChargedOnce(t *testing.T) {
	l := twoRules(t, newClock())
	a, b := core.Hit{Rule: "ip", Key: "k"}, core.Hit{Rule: "ip", Key: "j"}
	for i, hits := range [][]core.Hit{{a, a}, {a, b, a}, {b, a, a}, {a, a, b, b}, {a, a, a}} {
		before := left(t, l, "ip", "k")
		if _, err := l.Take(t.Context(), 1, hits...); err != nil {
			t.Fatal(err)
		}
		if got := left(t, l, "ip", "k"); got != before-1 {
			t.Errorf("take %d of %v: %d hits left, want %d", i, hits, got, before-1)
		}
	}
}
