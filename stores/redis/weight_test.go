package redisstore

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// As many decisions on one window travel together as may, and fewer the longer they
// take. One that may take a millisecond travels alone.
func TestHowManyDecisionsTravelTogether(t *testing.T) {
	hour := core.PerHour(100)
	hourly := func(a core.Algorithm, quota int64) core.Limit {
		return core.Limit{Quota: quota, Window: time.Hour, Algorithm: a, Precision: time.Second}
	}
	for _, c := range []struct {
		what        string
		limits      []core.Limit
		least, most int
	}{
		{"one window", []core.Limit{hour}, mostCalls, mostCalls},
		{"three windows", []core.Limit{hour, hour, hour}, mostCalls, mostCalls},
		{"four windows", []core.Limit{hour, hour, hour, hour}, 40, 60},
		{"a token bucket", []core.Limit{hourly(core.TokenBucket, 100)}, mostCalls, mostCalls},
		{"a lockout", []core.Limit{{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Hour}}}, mostCalls, mostCalls},
		{"3,600 buckets", []core.Limit{hourly(core.BucketedWindow, 100)}, 1, 4},
		{"a short log", []core.Limit{hourly(core.SlidingLog, 10)}, mostCalls, mostCalls},
		{"a log of 500", []core.Limit{hourly(core.SlidingLog, 500)}, 5, 6},
		{"a long log", []core.Limit{hourly(core.SlidingLog, 10_000)}, 0, 0},
		{"the largest quota", []core.Limit{hourly(core.SlidingLog, core.MaxQuota)}, 0, 0},
	} {
		rule := newCounters(New(nil), "l", []core.StoreRule{{Name: "r", Limits: c.limits}}).rules[0]
		if n := min(mostCalls, mostWeight/(callWeight+rule.weight)); n < c.least || n > c.most {
			t.Errorf("%s: %d together, want %d to %d", c.what, n, c.least, c.most)
		}
	}
}
