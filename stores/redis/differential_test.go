package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
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

// anyQuotas returns quotas for one batch, nil for the limits' own.
func anyQuotas(r *rand.Rand, limits []core.Limit) (quotas []int64) {
	if r.IntN(2) == 0 {
		return nil
	}
	for _, l := range limits {
		most := int64(core.MaxQuota)
		if l.Algorithm == core.SlidingLog {
			most = core.MaxLogQuota
		}
		q := l.Quota
		switch r.IntN(8) {
		case 0:
			q = 0
		case 1:
			q = core.Unlimited
		case 2:
			q = 1 + r.Int64N(most)
		case 3, 4:
			q = min(most, 1+r.Int64N(2*l.Quota+1))
		case 5:
			q = min(most, max(1, l.Quota/2+r.Int64N(3)))
		}
		quotas = append(quotas, q)
	}
	return quotas
}

// smallQuotas returns quotas for one batch of a smallLimit, nil for the limits' own.
func smallQuotas(r *rand.Rand, limits []core.Limit) (quotas []int64) {
	if r.IntN(3) > 0 {
		return nil
	}
	for _, l := range limits {
		quotas = append(quotas, [...]int64{l.Quota, core.Unlimited, r.Int64N(9), max(1, l.Quota-1), l.Quota / 2}[r.IntN(5)])
	}
	return quotas
}
