package storetest

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// raised tests that a token bucket whose quota is raised keeps what is owed, although its burst
// stays: the debt may then be more than the burst would have been at the quota of the charge.
func (s *suite) raised(t *testing.T) {
	limit := core.Limit{Name: "l", Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 100}
	c := one(t, s.new(t, nil), limit)
	if !c.take("k", 100).Allowed || c.remaining("k") != 0 {
		t.Fatalf("%v: %d left after 100 hits", limit, c.remaining("k"))
	}
	for _, quota := range []int64{20, 1000} {
		limit.Quota = quota
		rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{limit}}}
		bound, err := c.bound.Reopen(rules)
		if err != nil {
			t.Fatal(err)
		}
		c = &counter{t, bound, rules, c.ops}
		if got := c.remaining("k"); got != 0 {
			t.Errorf("raised to %v: %d left, want 0", limit, got)
		}
	}
}
