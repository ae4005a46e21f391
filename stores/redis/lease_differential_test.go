package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// dots is a lease of eight bytes that a pattern of Lua gives a meaning. The bytes of several such
// leases, and of a cost of manyDots, are alike at other places, too.
const (
	dots     = 0x2e2e2e2e2e2e2e2e
	manyDots = 0x2e2e2e2e
)

func anyLease(r *rand.Rand) uint64 {
	if r.IntN(2) == 0 {
		return dots + r.Uint64N(3)<<(8*r.IntN(8))
	}
	return 1 + r.Uint64N(4)
}

// Leases on Redis are those of the process, whatever is taken, renewed, released, charged and
// granted, with several leases of a key, with leases of any number and with a clock that also goes back.
func TestLeasesOnRedisAgreeWithMemory(t *testing.T) {
	t.Parallel()
	client := newClient(t, redistest.Start(t).Addr)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	admitted, denied, ended := 0, 0, 0
	for round := range rounds(60) {
		clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
		window := 10*time.Second + time.Duration(r.Int64N(int64(time.Minute))).Truncate(time.Microsecond)
		slots := core.Limit{Quota: 1 + r.Int64N(7), Window: window, Algorithm: core.Leases}
		hits := core.Limit{Quota: 20, Window: time.Minute}
		rules := []core.StoreRule{{Name: "slots", Limits: []core.Limit{slots}}, {Name: "both", Limits: []core.Limit{hits, slots}}}
		memory := core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))
		name := fmt.Sprint("l", round)
		bounds := [2]core.Counters{
			core.Must(memory.Open(name, rules)),
			core.Must(redisstore.New(client, redisstore.Timeout(patience), redisstore.Clock(clock.Now), redisstore.WithoutDenialCache()).Open(fmt.Sprint(name, "-", seed), rules)),
		}
		step, what := 0, ""
		both := func(op core.Op, cost int64, lease uint64) *core.Batch {
			t.Helper()
			var pair [2]*core.Batch
			for i := range pair {
				pair[i] = new(core.Batch)
				for rule := range rules {
					pair[i].Items = append(pair[i].Items, core.Item{Rule: rule, Key: []byte("k"), Cost: cost, Lease: lease, Results: make([]core.Result, rule+1)})
				}
				if err := storetest.Do(t.Context(), bounds[i], op, pair[i]); err != nil {
					t.Fatal(err)
				}
				pair[i].Allowed = pair[i].Allowed && op&decides != 0
			}
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Fatalf("seed %d, round %d, step %d, %s of %d for lease %x, %v, time %d:\nmemory %+v\nredis  %+v", seed, round, step, what, cost, lease, slots, clock.Now().UnixMicro(), pair[0], pair[1])
			}
			return pair[0]
		}
		for step = range 50 {
			cost, lease, back := r.Int64N(3), anyLease(r), false
			switch r.IntN(12) {
			case 0, 1, 2, 3, 4:
				what = "take"
				cost++
				if both(core.OpTake, cost, lease+uint64(step)<<32).Allowed {
					admitted++
					back = r.IntN(4) == 0
				} else {
					denied++
				}
			case 5, 6, 7:
				what = "renewal"
				if r.IntN(2+6*(round%2)) == 0 {
					cost = manyDots << (24 * r.IntN(2)) & 0x7fffffff
				}
				both(core.OpRenew, cost, lease)
			case 8, 9:
				what = "release"
				both(core.OpRelease, 1, lease)
			case 10:
				what = "charge"
				both(core.OpCharge, cost, lease)
			case 11:
				what = "grant"
				both(core.OpGrant, cost+1, lease)
			}
			d := time.Duration(r.Int64N(int64(window)/6 + 1)).Truncate(time.Microsecond)
			switch r.IntN(12) {
			case 0:
				d = window
				ended++
			case 1:
				d = 0
			}
			// Redis drops what has ended when it writes, Memory at any time: the clock goes back only
			// after both have written, and both look then, which shortens what is far ahead.
			if back {
				d = -d - []time.Duration{0, window, 3 * window}[r.IntN(3)]
			}
			clock.Advance(d)
			if what += ", then a look,"; back {
				both(core.OpTake, 0, 0)
			} else {
				both(core.OpPeek, 1, 0)
			}
		}
		_ = memory.Close()
	}
	if admitted < 300 || denied < 300 || ended < 100 {
		t.Errorf("%d takes were admitted, %d denied, and %d times a window passed: the test shows little", admitted, denied, ended)
	}
}
