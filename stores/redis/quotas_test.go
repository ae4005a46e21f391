package redisstore_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

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

// A take without a limit is counted, by every algorithm, and tells what the limit's
// own quota leaves.
func TestATakeWithoutALimitIsCounted(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	for _, l := range all(20) {
		t.Run(l.Name, func(t *testing.T) {
			b := bind(t, client, []core.StoreRule{{Name: "r", Limits: []core.Limit{l}}}, redisstore.Timeout(patience))
			for _, left := range []int64{5, 0, 0} {
				batch := one("k", 15, 1)
				batch.Items[0].Quotas = []int64{core.Unlimited}
				if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
					t.Fatalf("allowed %v, error %v", batch.Allowed, err)
				}
				if r := batch.Items[0].Results[0]; !r.Allowed || r.Remaining != left || r.RetryAfter != 0 {
					t.Errorf("%+v, want %d left", r, left)
				}
			}
			if take(t, b, "k").Allowed {
				t.Error("a take with the limit's own quota is admitted after that")
			}
		})
	}
}

// A charge may cost more than any count holds: every algorithm counts what it can.
func TestAChargeOfAnyCost(t *testing.T) {
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	memory := core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))
	client := newClient(t, redistest.Start(t).Addr)
	for _, l := range all(20) {
		t.Run(l.Name, func(t *testing.T) {
			rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{l}}}
			bounds := []core.Counters{
				core.Must(memory.Open(bindName(t), rules)),
				bind(t, client, rules, redisstore.Timeout(patience), redisstore.Clock(clock.Now)),
			}
			for _, cost := range []int64{3, core.MaxQuota, core.MaxQuota + 1, 1 << 53, math.MaxInt64} {
				for _, quota := range []int64{l.Quota, 7, core.Unlimited} {
					var said [2]*core.Batch
					for i, b := range bounds {
						said[i] = one("k", cost, 1)
						said[i].Items[0].Quotas = []int64{quota}
						if err := storetest.Do(t.Context(), b, core.OpCharge, said[i]); err != nil {
							t.Fatal(err)
						}
					}
					if !reflect.DeepEqual(said[0], said[1]) {
						t.Errorf("cost %d, quota %d: in the process %+v, in Redis %+v", cost, quota, said[0], said[1])
					}
				}
			}
		})
	}
	_ = memory.Close()
}
