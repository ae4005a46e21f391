package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A decision on one limit is adjusted with the quota that it was made with.
func TestAdjustWithTheQuotaOfTheDecision(t *testing.T) {
	c := newClock()
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{{Quota: 6, Window: time.Minute, Algorithm: core.TokenBucket}}}}}, c)
	k := core.Hit{Rule: "r", Key: "k", Quotas: []int64{60}}
	d, err := l.Take(t.Context(), 30, k)
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if err := l.Adjust(t.Context(), d, 60); err != nil {
		t.Fatal(err)
	}
	if d, _ = l.Peek(t.Context(), 1, k); d.RetryAfter != time.Second {
		t.Errorf("a wait of %v, want 1s", d.RetryAfter)
	}
}

// The highest quota is a quota.
func TestTheHighestQuotaOfARequest(t *testing.T) {
	for _, row := range []struct {
		limit core.Limit
		quota int64
	}{
		{core.PerMinute(5), core.MaxQuota},
		{core.Limit{Quota: 5, Window: time.Minute, Algorithm: core.SlidingLog}, core.MaxLogQuota},
	} {
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{row.limit}}}}, newClock())
		d, err := l.Take(t.Context(), 6, core.Hit{Rule: "r", Key: "k", Quotas: []int64{row.quota}})
		if err != nil || !d.Allowed || d.Remaining != row.quota-6 {
			t.Errorf("%v: %v, %v", row.limit, d, err)
		}
	}
}

// The longest block is allowed, and a look without a cost at a blocked key succeeds.
func TestTheLongestBlock(t *testing.T) {
	for _, limits := range [][]core.Limit{{core.PerMinute(5)}, {core.PerMinute(5), core.PerHour(9)}} {
		c := newClock()
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: limits}}}, c)
		k := core.Hit{Rule: "r", Key: "k"}
		if err := l.Block(t.Context(), core.MaxWindow, k); err != nil {
			t.Fatal(err)
		}
		for _, hits := range [][]core.Hit{{k}, {k, {Rule: "r", Key: "other"}}} {
			if d, err := l.Peek(t.Context(), 0, hits...); err != nil || !d.Allowed || d.Reason == core.ReasonOverLimit || d.RetryAfter != 0 {
				t.Errorf("a look: %v, %v", d, err)
			}
			if d, err := l.Take(t.Context(), 0, hits...); err != nil || !d.Allowed {
				t.Errorf("a take of nothing: %v, %v", d, err)
			}
		}
		if l.Allow(t.Context(), k) {
			t.Error("allowed")
		}
	}
}

// A block that is over before the window does not shorten what the window says.
func TestABlockShorterThanTheWindow(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{{Quota: 2, Window: time.Minute, Algorithm: core.TokenBucket}}}}}, newClock())
	k := core.Hit{Rule: "r", Key: "k"}
	if d, err := l.Take(t.Context(), 2, k); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if err := l.Block(t.Context(), time.Second, k); err != nil {
		t.Fatal(err)
	}
	d, err := l.Take(t.Context(), 1, k)
	if err != nil || d.RetryAfter != 30*time.Second || d.ResetAfter != time.Minute {
		t.Errorf("%v, %v: waits %v and %v", d, err, d.RetryAfter, d.ResetAfter)
	}
	for s := range d.Limits() {
		if s.MoreAfter != 30*time.Second {
			t.Errorf("more after %v, want 30s", s.MoreAfter)
		}
	}
}

// No header names a limit that is unlimited for the request, in any form.
func TestHeadersLeaveOutUnlimitedLimits(t *testing.T) {
	for _, row := range []struct {
		headers core.Headers
		quotas  []int64
		want    []string // how many limits each value names is how many commas and quotas it has
	}{
		{core.HeadersDraft07, []int64{core.Unlimited, core.Unlimited}, nil},
		{core.HeadersXSeconds, []int64{core.Unlimited, core.Unlimited}, nil},
		{core.HeadersDraft10, []int64{core.Unlimited, core.Unlimited}, nil},
		{core.HeadersDraft07, []int64{core.Unlimited, 7}, []string{"7;w=3600"}},
		{core.HeadersDraft10, []int64{core.Unlimited, 7}, []string{`"r-1h";q=7;w=3600`}},
	} {
		l := newLimiter(t, core.Config{Headers: row.headers, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(5), core.PerHour(9)}}}}, newClock())
		d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k", Quotas: row.quotas})
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		var policies []string
		all := d.AppendHeaders(nil)
		for _, h := range all {
			if strings.EqualFold(h.Name, "RateLimit-Policy") {
				policies = append(policies, h.Value)
			}
		}
		if row.want == nil && len(all) > 0 || strings.Join(policies, "|") != strings.Join(row.want, "|") {
			t.Errorf("headers %v, quotas %v: %v, want the policy %v", row.headers, row.quotas, all, row.want)
		}
	}
}
