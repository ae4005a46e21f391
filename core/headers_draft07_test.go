package core_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// The draft forbids two items of one number. Readers find the window of the
// deciding limit by its number.
func TestDraft07NamesEachQuotaOnce(t *testing.T) {
	c := newClock()
	l := newLimiter(t, core.Config{Headers: core.HeadersDraft07, Rules: []core.Rule{
		{Name: "second", Key: static("k"), Limits: []core.Limit{{Quota: 3, Window: time.Second, Algorithm: core.FixedWindow}, {Quota: 5, Window: time.Minute, Algorithm: core.FixedWindow}}},
		{Name: "hour", Key: static("k"), Limits: []core.Limit{{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow}, {Quota: 4, Window: 1500 * time.Millisecond, Algorithm: core.FixedWindow}}},
	}}, c)
	// Of the two limits of 3, the first one decides at first. Two seconds later
	// the hour is the only window with a hit in it.
	for i, want := range []string{
		"Ratelimit-Policy: 3;w=1, 5;w=60\nRatelimit: limit=3, remaining=2, reset=1\n",
		"Ratelimit-Policy: 3;w=3600, 5;w=60\nRatelimit: limit=3, remaining=1, reset=3598\n",
	} {
		if got := headerText(l.Check(&request{})); got != want {
			t.Errorf("request %d:\n%swant\n%s", i+1, got, want)
		}
		c.advance(2 * time.Second)
	}
}

// No item without w is allowed, and no empty list.
func TestDraft07LeavesOutWindowsThatAreNoWholeSeconds(t *testing.T) {
	for _, row := range []struct {
		limits []core.Limit
		want   string
	}{
		{[]core.Limit{{Quota: 2, Window: 1500 * time.Millisecond, Algorithm: core.FixedWindow}}, "Ratelimit: limit=2, remaining=1, reset=2\n"},
		// 2;w=60 would be taken for the window of the deciding limit.
		{[]core.Limit{
			{Quota: 2, Window: 90*time.Second + time.Millisecond, Algorithm: core.FixedWindow}, {Quota: 2, Window: time.Minute, Algorithm: core.FixedWindow},
		}, "Ratelimit: limit=2, remaining=1, reset=91\n"},
		{[]core.Limit{{Quota: 0, Burst: 7, Window: time.Minute, Algorithm: core.TokenBucket}}, "Ratelimit-Policy: 0;w=60\nRatelimit: limit=0, remaining=0, reset=0\nCache-Control: no-store\n"},
	} {
		c := oneRule(row.limits...)
		c.Headers = core.HeadersDraft07
		if got := headerText(newLimiter(t, c, newClock()).Check(&request{})); got != row.want {
			t.Errorf("%v:\n%swant\n%s", row.limits, got, row.want)
		}
	}
}

// A denied response has the same time in RateLimit as in Retry-After.
func TestDraft07ResetIsRetryAfter(t *testing.T) {
	for _, limit := range []core.Limit{
		core.PerMinute(7), core.PerHour(3), {Quota: 5, Window: time.Minute, Algorithm: core.TokenBucket}, {Quota: 3, Window: time.Minute, Algorithm: core.SlidingLog},
		{Quota: 2, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: 90 * time.Second}},
	} {
		clock := newClock()
		c := oneRule(limit)
		c.Headers = core.HeadersDraft07
		l := newLimiter(t, c, clock)
		denied := 0
		for range 20 {
			d := l.Check(&request{})
			text := headerText(d)
			if d.Allowed {
				if want := fmt.Sprintf("remaining=%d, reset=%d\n", d.Remaining, (d.ResetAfter.Truncate(time.Millisecond)+time.Second-1)/time.Second); !strings.Contains(text, want) {
					t.Errorf("%v, allowed: %s, want %s", limit, text, want)
				}
				clock.advance(700 * time.Millisecond)
				continue
			}
			denied++
			_, reset, _ := strings.Cut(text, "remaining=0, reset=")
			reset, _, _ = strings.Cut(reset, "\n")
			_, retry, _ := strings.Cut(text, "Retry-After: ")
			if reset == "" || reset+"\n" != retry {
				t.Errorf("%v, denied: %s", limit, text)
			}
		}
		if denied == 0 {
			t.Errorf("%v denied nothing", limit)
		}
	}
}

func TestHeadersThatCannotBeInOneResponse(t *testing.T) {
	for _, row := range []struct {
		all        core.Headers
		each       [3]core.Headers
		ok         bool
		mustBeSaid string
	}{
		{all: core.HeadersDraft07 | core.HeadersDraft10, mustBeSaid: "cannot be joined"},
		{each: [3]core.Headers{0, core.HeadersDraft07, core.HeadersOff}, mustBeSaid: `Rules[1].Headers: HeadersDraft07 and HeadersDraft10, the default, in one limiter (rule "r0" has the other one)`},
		{all: core.HeadersDraft07, each: [3]core.Headers{0, core.HeadersOff, core.HeadersDraft10 | core.HeadersXEpoch}, mustBeSaid: "Rules[2].Headers"},
		{each: [3]core.Headers{core.HeadersXSeconds, core.HeadersDraft07 | core.HeadersXSeconds, core.HeadersOff}, ok: true},
		{all: core.HeadersDraft07, ok: true},
	} {
		c := core.Config{Headers: row.all, Rules: numbered(3)}
		for i := range c.Rules {
			c.Rules[i].Headers = row.each[i]
		}
		_, err := core.New(c)
		if row.ok != (err == nil) || !row.ok && (!errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), row.mustBeSaid)) {
			t.Errorf("%#x %#x: %v, want %q", row.all, row.each, err, row.mustBeSaid)
		}
	}
}

// A rule with other headers has no item, and no lines if it does not decide.
func TestDraft07OfSomeRules(t *testing.T) {
	rules := numbered(3)
	rules[0].Headers, rules[1].Headers, rules[2].Headers = core.HeadersOff, core.HeadersDraft07, core.HeadersXSeconds
	rules[0].Limits = []core.Limit{core.PerMinute(9)}
	rules[1].Limits = []core.Limit{core.PerMinute(5)} // it decides
	got := headerText(newLimiter(t, core.Config{Rules: rules}, newClock()).Check(&request{}))
	if want := "Ratelimit-Policy: 5;w=60\nRatelimit: limit=5, remaining=4, reset=60\n"; got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}
