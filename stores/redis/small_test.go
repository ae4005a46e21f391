package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// lockouts stands for fixed windows with a lockout beside the algorithms.
const lockouts core.Algorithm = 5

// smallLimit returns a limit of so few hits and such short times that a few steps
// reach every edge of its arithmetic, or of so many hits that one costs a small
// part of a microsecond.
func smallLimit(r *rand.Rand, a core.Algorithm) core.Limit {
	ms := time.Millisecond
	l := core.Limit{Algorithm: a, Quota: 1 + r.Int64N(6), Window: time.Duration(1+r.IntN(4)) * ms}
	switch a {
	case lockouts:
		l.Algorithm = core.FixedWindow
		l.Lockout = core.Lockout{First: time.Duration(1+r.IntN(3)) * ms, Factor: 1 + r.Int64N(3), Decay: time.Duration(1+r.IntN(6)) * ms}
		l.Lockout.Max = l.Lockout.First + time.Duration(r.IntN(20))*ms + time.Duration(r.IntN(3))*time.Microsecond
	case core.TokenBucket:
		l.Burst = r.Int64N(5)
		switch r.IntN(4) {
		case 0:
			l.Quota = 1000 * l.Window.Milliseconds() // a hit costs a microsecond
		case 1:
			l.Quota, l.Burst = core.MaxQuota-r.Int64N(3), 0
		}
	case core.BucketedWindow:
		l.Precision, l.Window = ms, l.Window*2
	case core.FixedWindow, core.SlidingWindow:
		l.Aligned = r.IntN(2) == 0
	}
	return l
}

// otherQuotas returns the rules with other quotas, which leave the counters.
func otherQuotas(r *rand.Rand, rules []core.StoreRule) []core.StoreRule {
	next := slices.Clone(rules)
	for i := range next {
		next[i].Limits = slices.Clone(next[i].Limits)
		for j := range next[i].Limits {
			if l := &next[i].Limits[j]; r.IntN(2) == 0 {
				l.Quota = 1 + r.Int64N(6)
			}
		}
	}
	return next
}

// The script and the counters of the process agree on sequences that meet the
// edges of all algorithms: of windows, buckets, waits and debts, to the
// microsecond, with charges, refunds in part, quotas that change and quotas of a
// batch's own.
func TestRedisAgreesWithMemoryAtEveryEdge(t *testing.T) {
	t.Parallel()
	client := newClient(t, redistest.Start(t).Addr)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds(120) {
		clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
		a := core.Algorithm(round % 6)
		rules := []core.StoreRule{{Name: "one", Limits: []core.Limit{smallLimit(r, a)}}, {Name: "two", Limits: []core.Limit{smallLimit(r, a)}}}
		second := smallLimit(r, core.Algorithm(r.IntN(6)))
		second.Window *= 8 // another limit, whatever its algorithm
		rules[1].Limits = append(rules[1].Limits, second)
		memory := core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))
		bounds := []core.Counters{
			core.Must(memory.Open("edges", rules)),
			core.Must(redisstore.New(client, redisstore.Timeout(patience), redisstore.Clock(clock.Now), redisstore.WithoutDenialCache()).Open(fmt.Sprint("edges", round, "-", seed), rules)),
		}
		var charged [][2]*core.Batch
		for step := range 50 {
			var said [2]*core.Batch
			rule, cost, peek := r.IntN(2), 1+r.Int64N(3), r.IntN(6) == 0
			if l := rules[rule].Limits[0]; l.Quota > 1e9 {
				cost = 1 + r.Int64N(1<<r.IntN(30)) // of any size, from a part of a microsecond on
			}
			switch n := r.IntN(12); {
			case n < 2 && len(charged) > 0:
				i := r.IntN(len(charged))
				said = charged[i]
				charged = slices.Delete(charged, i, i+1)
				part := 1 + r.Int64N(said[0].Items[0].Cost)
				for i, b := range bounds {
					said[i].Items[0].Cost = part
					if err := storetest.Do(t.Context(), b, core.OpRefund, said[i]); err != nil {
						t.Fatal(err)
					}
				}
				continue
			case n == 2 && round%4 < 2:
				rules = otherQuotas(r, rules)
				for i := range bounds {
					bounds[i] = core.Must(bounds[i].Reopen(rules))
				}
				continue
			}
			op, quotas := core.OpTake, smallQuotas(r, rules[rule].Limits)
			if r.IntN(5) == 0 {
				op, peek, cost = core.OpCharge, false, cost+r.Int64N(9)
			}
			if peek {
				op = core.OpPeek
			}
			for i, b := range bounds {
				said[i] = &core.Batch{Items: []core.Item{{Rule: rule, Key: []byte("k"), Cost: cost, Quotas: quotas, Results: make([]core.Result, len(rules[rule].Limits))}}}
				if err := storetest.Do(t.Context(), b, op, said[i]); err != nil {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(said[0], said[1]) {
				t.Fatalf("seed %d, round %d, step %d, rules %v, time %d, cost %d, quotas %v:\nmemory %+v\nredis  %+v", seed, round, step, rules, clock.Now().UnixMicro(), cost, quotas, said[0], said[1])
			}
			if said[0].Allowed && !peek {
				charged = append(charged, said)
			}
			l, wait := rules[rule].Limits[0], said[0].Items[0].Results[0].RetryAfter
			steps := []time.Duration{0, 0, 0, time.Microsecond, l.Window / 4, l.Window / 2, l.Window - time.Microsecond, l.Window, l.Window + time.Microsecond, l.Lockout.First, l.Lockout.Decay, l.Precision}
			if wait > 0 && wait < time.Second {
				steps = append(steps, wait, wait, wait-time.Microsecond)
			}
			clock.Advance(steps[r.IntN(len(steps))].Truncate(time.Microsecond))
		}
		_ = memory.Close()
	}
}

// A token bucket whose quota is 0 for a while admits nothing, and forgets nothing:
// a write for the limit beside it keeps what is owed.
func TestAQuotaOfZeroKeepsADebt(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 5}, core.Limit{Quota: 100, Window: 24 * time.Hour})
	rebind := func(bucket core.Limit) {
		f.bound = core.Must(f.bound.Reopen([]core.StoreRule{{Name: "r", Limits: []core.Limit{bucket, {Quota: 100, Window: 24 * time.Hour}}, DenyUnreadable: true}}))
	}
	first := f.take()
	f.take()
	f.take()
	rebind(core.Limit{Quota: 0, Window: time.Hour, Algorithm: core.TokenBucket})
	if f.take().Allowed {
		t.Error("a quota of 0 admits")
	}
	if err := storetest.Do(t.Context(), f.bound, core.OpRefund, first); err != nil { // of the other limit's hit
		t.Fatal(err)
	}
	rebind(core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 5})
	b := one("k", 0, 2)
	if err := storetest.Do(t.Context(), f.bound, core.OpTake, b); err != nil {
		t.Fatal(err)
	}
	if r := b.Items[0].Results; r[0].Remaining != 2 || r[1].Remaining != 98 || f.log.Len() > 0 {
		t.Errorf("%+v, want 2 of the bucket and 98 of the day; the log:\n%s", r, &f.log)
	}
}
