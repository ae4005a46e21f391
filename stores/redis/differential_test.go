package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
	_ "time/tzdata" // so that every system has the zones

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// anyLimit returns a valid limit from the whole range, small and large alike.
func anyLimit(r *rand.Rand) core.Limit {
	for {
		l := core.Limit{
			Quota:     1 + r.Int64N(1<<r.IntN(32)),
			Window:    core.MinWindow + time.Duration(r.Int64N(1<<r.IntN(46)))*time.Microsecond,
			Algorithm: core.Algorithm(r.IntN(5)),
		}
		switch l.Algorithm {
		case core.TokenBucket:
			l.Burst = r.Int64N(1 << r.IntN(32))
		case core.BucketedWindow:
			n := 1 + r.IntN(300)
			l.Precision = max(core.MinWindow, (l.Window / time.Duration(n)).Truncate(time.Microsecond))
			l.Window = l.Precision * time.Duration(n)
		case core.SlidingLog:
			l.Quota = min(l.Quota, 1+r.Int64N(500))
		case core.FixedWindow:
			if r.IntN(2) == 0 {
				l.Lockout.First = core.MinWindow + time.Duration(r.Int64N(1<<r.IntN(44)))*time.Microsecond
				l.Lockout.Factor = 1 + r.Int64N(1<<r.IntN(8))
				l.Lockout.Max = l.Lockout.First + time.Duration(r.Int64N(1<<r.IntN(44)))*time.Microsecond
				l.Lockout.Decay = core.MinWindow + time.Duration(r.Int64N(1<<r.IntN(44)))*time.Microsecond
				break
			}
			if r.IntN(2) == 0 {
				l = anyCalendar(r, l.Quota)
				break
			}
			l.Aligned = r.IntN(2) == 0
		default:
			l.Aligned = r.IntN(2) == 0
		}
		if l.Validate() == nil {
			return l
		}
	}
}

// anyCalendar returns a limit of the calendar of some zone.
func anyCalendar(r *rand.Rand, quota int64) core.Limit {
	zone, err := time.LoadLocation([]string{"Europe/Berlin", "Africa/Cairo", "Australia/Lord_Howe", "Asia/Kathmandu"}[r.IntN(4)])
	if err != nil {
		panic(err)
	}
	return []core.Limit{core.PerDay(quota), core.PerWeek(quota), core.PerMonth(quota)}[r.IntN(3)].In(zone)
}

// decides are the operations that say whether all limits allow the cost.
const decides = core.OpTake | core.OpPeek | core.OpCharge | core.OpGrant

// The Lua and the Go of the same arithmetic agree to the unit, on thousands of
// random steps over the whole range of limits, costs and times, with charges,
// refunds in part, grants, resets, quotas of a batch's own and a clock that also goes back.
func TestRedisAgreesWithMemory(t *testing.T) {
	t.Parallel()
	client := newClient(t, redistest.Start(t).Addr)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds(80) {
		clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
		rules := []core.StoreRule{{Name: "a", Limits: []core.Limit{anyLimit(r)}}, {Name: "b"}}
		for len(rules[1].Limits) < 3 {
			l := anyLimit(r)
			l.Algorithm, l.Burst, l.Precision, l.Aligned, l.Lockout = []core.Algorithm{core.SlidingWindow, core.FixedWindow, core.TokenBucket}[len(rules[1].Limits)], 0, 0, false, core.Lockout{}
			if l.Algorithm != core.FixedWindow {
				l.Zone = nil
			}
			rules[1].Limits = append(rules[1].Limits, l)
		}
		memory := core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))
		name := fmt.Sprint("l", round)
		bounds := [2]core.Counters{
			core.Must(memory.Open(name, rules)),
			core.Must(redisstore.New(client, redisstore.Timeout(patience), redisstore.Clock(clock.Now), redisstore.WithoutDenialCache()).Open(fmt.Sprint(name, "-", seed), rules)),
		}
		var taken [][2]*core.Batch
		for step := range 40 {
			var pair [2]*core.Batch
			items := r.IntN(2) + 1
			key, cost, peek := fmt.Append(nil, r.IntN(1+round%2)), anyCost(r, rules), r.IntN(8) == 0
			quotas := [2][]int64{anyQuotas(r, rules[0].Limits), anyQuotas(r, rules[1].Limits)}
			for i := range pair {
				pair[i] = new(core.Batch)
				for rule := range items {
					pair[i].Items = append(pair[i].Items, core.Item{Rule: rule, Key: key, Cost: cost, Quotas: quotas[rule], Results: make([]core.Result, len(rules[rule].Limits))})
				}
			}
			var op core.Op
			took := false
			switch n := r.IntN(20); {
			case n == 0:
				op = core.OpReset
				taken = nil // what a reset has forgotten is not to be refunded
			case n < 4 && len(taken) > 0:
				pair, taken = taken[0], taken[1:]
				part := 1 + r.Int64N(pair[0].Items[0].Cost)
				for _, batch := range pair {
					for i := range batch.Items {
						batch.Items[i].Cost = part
					}
				}
				op = core.OpRefund
			case n < 6:
				op = core.OpGrant
				taken = nil // nor what has been given back already
			case n < 9:
				took, peek = true, false
				op = core.OpCharge
			default:
				took, op = true, core.OpTake
				if peek {
					op = core.OpPeek
				}
			}
			for i := range pair {
				if err := storetest.Do(t.Context(), bounds[i], op, pair[i]); err != nil {
					t.Fatal(err)
				}
				pair[i].Allowed = pair[i].Allowed && op&decides != 0
			}
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Fatalf("seed %d, round %d, step %d, rules %v, time %d, cost %d, quotas %v:\nmemory %+v\nredis  %+v", seed, round, step, rules, clock.Now().UnixMicro(), cost, quotas, pair[0], pair[1])
			}
			charged := took && pair[0].Allowed && !peek && cost > 0
			if charged {
				taken = append(taken, pair)
			}
			d := anyStep(r, rules)
			// Memory drops what has left its window at any time, Redis when it
			// writes: a clock that is set back may bring that back to life. So
			// it is set back only where both have just written everything, and
			// both look at everything then, which moves back what is far ahead.
			back := charged && items == 2 && round%2 == 0 && r.IntN(5) == 0
			if back {
				d = -d
			}
			clock.Advance(d)
			for i := 0; back && i < len(bounds); i++ {
				look := &core.Batch{Items: []core.Item{
					{Rule: 0, Key: key, Results: make([]core.Result, 1)}, {Rule: 1, Key: key, Results: make([]core.Result, 3)},
				}}
				if err := storetest.Do(context.Background(), bounds[i], core.OpTake, look); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = memory.Close()
	}
}

func anyCost(r *rand.Rand, rules []core.StoreRule) int64 {
	l := rules[r.IntN(2)].Limits[0]
	switch r.IntN(6) {
	case 0:
		return r.Int64N(3)
	case 1:
		return max(l.Quota, l.Burst)
	default:
		return r.Int64N(max(l.Quota, l.Burst)/3 + 2)
	}
}

func anyStep(r *rand.Rand, rules []core.StoreRule) time.Duration {
	l := rules[r.IntN(2)].Limits[0]
	d := time.Duration(r.Int64N(int64(l.Window)*5/4)) / time.Duration(1+r.IntN(9))
	switch r.IntN(25) {
	case 0:
		d = l.Window
	case 1, 2:
		d = l.Lockout.First
	}
	return d.Truncate(time.Microsecond)
}
