package redisstore

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func quotasCounters() *counters {
	return newCounters(New(nil), "l", []core.StoreRule{
		{Name: "three", Limits: []core.Limit{
			{Quota: 9, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 6},
			{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Max: time.Hour, Factor: 2, Decay: time.Hour}},
			core.PerHour(10),
		}, DenyUnreadable: true},
		{Name: "log", Limits: []core.Limit{{Quota: 10, Window: time.Hour, Algorithm: core.SlidingLog}}},
	})
}

// Quotas change the numbers of each limit in what is sent, and nothing else; a take
// with the limits' own sends what one without quotas sends.
func TestTheLimitsWithQuotas(t *testing.T) {
	rule := &quotasCounters().rules[0]
	own := rule.limits.(string)
	for _, it := range []*core.Item{{}, {Quotas: []int64{9, 5, 10}}} {
		if limits, weight := rule.textsOf(it, rule.limits); limits != rule.limits || weight != rule.weight {
			t.Errorf("quotas %v: %x of weight %d, want %x of weight %d", it.Quotas, limits, weight, own, rule.weight)
		}
		if n := testing.AllocsPerRun(10, func() { rule.textsOf(it, rule.limits) }); n > 0 {
			t.Errorf("quotas %v: %v allocations", it.Quotas, n)
		}
	}
	limits, _ := rule.textsOf(&core.Item{Quotas: []int64{3, core.Unlimited, 0}}, rule.limits)
	text := limits.(string)
	const bucket, lockout, window = textHead, textHead + textLimit, textHead + 2*textLimit
	numbers := map[int]uint32{bucket + textQuota: 3, bucket + textCapacity: 2, window + textQuota: 0, window + textCapacity: 0}
	if len(text) != len(own) {
		t.Fatalf("%x, want as many bytes as %x", text, own)
	}
	for at := 0; at < len(own); at++ {
		if at == lockout+textUnlimited {
			if text[at] != 1 {
				t.Error("the lockout has a quota")
			}
		} else if want, ok := numbers[at]; ok {
			if got := binary.LittleEndian.Uint32([]byte(text[at:])); got != want {
				t.Errorf("at byte %d: %d, want %d", at, got, want)
			}
			at += 3
		} else if text[at] != own[at] {
			t.Errorf("byte %d changes", at)
		}
	}
}

// A log that may become long by the quota of a take weighs more, a shorter one less.
func TestALargeQuotaOfALogWeighs(t *testing.T) {
	rule := &quotasCounters().rules[1]
	for quota, want := range map[int64]int{10: rule.weight, 10_000: rule.weight + 1249, 0: rule.weight - 1, core.Unlimited: rule.weight} {
		if _, weight := rule.textsOf(&core.Item{Quotas: []int64{quota}}, rule.limits); weight != want {
			t.Errorf("a quota of %d: %d, want %d", quota, weight, want)
		}
	}
}

// Decisions with the same quotas share one argument of their command.
func TestDecisionsShareTheLimitsWithQuotas(t *testing.T) {
	b := quotasCounters()
	x := &exchange{store: b.store}
	for _, quotas := range [][]int64{nil, {7}, {7}, {8}, {10}} {
		items := []namedItem{{&core.Item{Cost: 1, Quotas: quotas, Results: make([]core.Result, 1)}, &b.rules[1], "k"}}
		x.calls = append(x.calls, b.store.newCall(operation{context.Background(), time.Now().Add(time.Hour)}, verbTake, items))
	}
	x.arm(context.Background(), x.script(), false)
	for i, want := range []int{2, 3, 3, 4, 2} {
		if got := x.calls[i].items[0].place; got != want {
			t.Errorf("the limits of decision %d are argument %d, want %d", i, got, want)
		}
	}
}
