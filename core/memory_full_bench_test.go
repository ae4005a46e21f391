package core_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// BenchmarkInsertAtCapacity inserts new keys into a store that holds MaxKeys
// keys, in different states.
func BenchmarkInsertAtCapacity(b *testing.B) {
	const maxKeys = 1_000_000
	hour := func(quota int64) []core.Limit { return []core.Limit{core.PerHour(quota)} }
	for _, c := range []struct {
		name        string
		limits      []core.Limit // of the keys that fill the store
		hits        int          // on each of them
		expire      bool
		into        string // the rule of the new keys
		otherLimits []core.Limit
		rules       int // more rules in the store
	}{
		{name: "denied", limits: hour(1), hits: 1, into: "k"},
		{name: "denied_but_the_newest", limits: hour(2), hits: 2, into: "k"},
		{name: "half_used", limits: hour(2), hits: 1, into: "k"},
		{name: "expired", limits: hour(2), hits: 1, expire: true, into: "k"},
		{name: "two_rules_denied", limits: hour(1), hits: 1, into: "other", otherLimits: hour(1)},
		{name: "two_rules_half_used", limits: hour(2), hits: 1, into: "other", otherLimits: hour(2)},
		{name: "two_hundred_rules", limits: hour(1), hits: 1, into: "other", otherLimits: hour(1), rules: 200},
		{name: "buckets_denied", limits: []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute}}, hits: 1, into: "k"},
		{name: "three_limits_denied", limits: []core.Limit{core.PerMinute(1), core.PerHour(1), core.PerDay(1)}, hits: 1, into: "k"},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.otherLimits == nil {
				c.otherLimits = hour(1)
			}
			now, ctx := time.Unix(1_700_000_000, 0), context.Background()
			m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: maxKeys, Clock: func() time.Time { return now }}))
			l := core.Must(core.New(core.Config{Store: m, Rules: []core.Rule{
				{Name: "k", Key: core.TakeOnly, Limits: c.limits}, {Name: "other", Key: core.TakeOnly, Limits: c.otherLimits},
			}}))
			for i := range c.rules {
				more := core.Must(core.New(core.Config{Name: strconv.Itoa(i), Store: m, Rules: []core.Rule{
					{Name: "more", Key: core.TakeOnly, Limits: c.limits},
				}}))
				for range maxKeys / 2 / c.rules {
					_, _ = more.Take(ctx, 1, core.Hit{Rule: "more", Key: strconv.Itoa(m.Len())})
				}
			}
			for i := 0; m.Len() < maxKeys; i++ {
				for range c.hits {
					_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: "old" + strconv.Itoa(i)})
				}
			}
			if c.expire {
				now = now.Add(3 * time.Hour)
			}
			keys, i := benchKeys(2_000_000), 0
			b.ReportAllocs()
			for b.Loop() {
				_, _ = l.Take(ctx, 1, core.Hit{Rule: c.into, Key: keys[i%len(keys)]})
				i++
			}
		})
	}
}

// BenchmarkTurnover reports the longest of the calls that replace all keys of a
// full store by others, none of which has expired; and the same while the store
// fills for the first time.
func BenchmarkTurnover(b *testing.B) {
	for _, quota := range []int64{1, 10} {
		b.Run("quota="+strconv.FormatInt(quota, 10), func(b *testing.B) {
			ctx, keys := context.Background(), benchKeys(2_000_000)
			for b.Loop() {
				l := benchLimiter(b, core.Rule{Name: "k", Key: core.TakeOnly, Limits: []core.Limit{core.PerHour(quota)}})
				fill, turnover := longestTake(ctx, l, keys[:1_000_000]), longestTake(ctx, l, keys[1_000_000:])
				b.ReportMetric(float64(fill.Nanoseconds())/1e3, "µs/longest-fill")
				b.ReportMetric(float64(turnover.Nanoseconds())/1e3, "µs/longest-turnover")
			}
		})
	}
}

func longestTake(ctx context.Context, l *core.Limiter, keys []string) (longest time.Duration) {
	for _, k := range keys {
		start := time.Now()
		_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: k})
		longest = max(longest, time.Since(start))
	}
	return longest
}
