package core_test

import (
	"context"
	"runtime"
	"runtime/debug"
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
		later       time.Duration // how much later the new keys come
		into        string        // the rule of the new keys
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
		{name: "buckets_denied_early", limits: []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute}}, hits: 1, later: 50 * time.Minute, into: "k"},
		{name: "token_bucket_denied", limits: []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.TokenBucket}}, hits: 1, into: "k"},
		{name: "three_limits_denied", limits: []core.Limit{core.PerMinute(1), core.PerHour(1), {Quota: 1, Window: 24 * time.Hour}}, hits: 1, into: "k"},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.otherLimits == nil {
				c.otherLimits = hour(1)
			}
			now, ctx := time.Unix(1_700_000_000, 0), context.Background()
			m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: maxKeys, Clock: func() time.Time { return now }}))
			l := core.Must(core.New(core.Config{Store: m, Rules: []core.Rule{
				{Name: "k", Limits: c.limits}, {Name: "other", Limits: c.otherLimits},
			}}))
			for i := range c.rules {
				more := core.Must(core.New(core.Config{Name: strconv.Itoa(i), Store: m, Rules: []core.Rule{
					{Name: "more", Limits: c.limits},
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
			now = now.Add(c.later)
			keys, i := benchKeys(2_000_000), 0
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			b.ReportAllocs()
			begun := cpuTime()
			for b.Loop() {
				_, _ = l.Take(ctx, 1, core.Hit{Rule: c.into, Key: keys[i%len(keys)]})
				i++
			}
			b.ReportMetric(float64(cpuTime()-begun)/float64(i), "cpu-ns/op")
		})
	}
}

// BenchmarkLongestCall reports the longest of a million calls that insert new
// keys: into an empty store, into a full one in which no key has expired, and
// into one in which all have. It is the time that the thread ran, with the
// garbage collector off, so that neither other programs nor a collection are in
// it. Interrupts are, and whatever else a hypervisor charges to the thread: the
// longest of as many calls that only count for about as long shows how much.
func BenchmarkLongestCall(b *testing.B) {
	for _, c := range []struct {
		name   string
		limits []core.Limit
	}{
		{"denied", []core.Limit{core.PerHour(1)}},
		{"half_used", []core.Limit{core.PerHour(2)}},
		{"three_limits", []core.Limit{core.PerMinute(1), core.PerHour(1), {Quota: 1, Window: 24 * time.Hour}}},
		{"buckets", []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			ctx, keys := context.Background(), benchKeys(3_000_000)
			for b.Loop() {
				now := time.Unix(1_700_000_000, 0)
				store := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 1_000_000, Clock: func() time.Time { return now }}))
				l := core.Must(core.New(core.Config{Store: store, Rules: []core.Rule{{Name: "k", Limits: c.limits}}}))
				take := func(k string) { _, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: k}) }
				reportLongest(b, "fill", keys[:1_000_000], take)
				reportLongest(b, "turnover", keys[1_000_000:2_000_000], take)
				now = now.Add(72 * time.Hour)
				reportLongest(b, "expiry", keys[2_000_000:], take)
				sum := 0
				reportLongest(b, "counting", keys[2_000_000:], func(string) {
					for i := range 2000 {
						sum ^= sum + i
					}
				})
				if err := store.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func reportLongest(b *testing.B, name string, keys []string, call func(key string)) {
	b.Helper()
	runtime.GC()
	var most time.Duration
	long := 0
	for before := cpuTime(); len(keys) > 0; keys = keys[1:] {
		call(keys[0])
		after := cpuTime()
		most = max(most, after-before)
		if after-before > 100*time.Microsecond {
			long++
		}
		before = after
	}
	b.ReportMetric(float64(most.Nanoseconds())/1e3, "µs/longest-"+name)
	b.ReportMetric(float64(long), "longer-than-100µs-"+name)
}
