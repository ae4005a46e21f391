package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// Slots of keys on several servers: each request has slots of two keys, all or none. They are renewed
// and released together, wherever they are.
func TestSlotsOnSeveralServers(t *testing.T) {
	t.Parallel()
	_, cluster := newCluster(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr, "z": redistest.Start(t).Addr}})
	t.Cleanup(func() { _ = ring.Close() })
	for name, client := range map[string]redisstore.Client{"Cluster": cluster, "Ring": ring} {
		t.Run(name, func(t *testing.T) {
			const keys = 16
			inFlight := []core.Limit{{Name: "slots", Quota: 1, Window: core.DefaultLease, Algorithm: core.Leases}}
			b := bind(t, client, []core.StoreRule{{Name: "one", Limits: inFlight}, {Name: "two", Limits: inFlight}}, redisstore.Timeout(patience))
			take := func(key string, lease uint64) *core.Batch {
				t.Helper()
				batch := &core.Batch{}
				for rule := range 2 {
					batch.Items = append(batch.Items, core.Item{Rule: rule, Key: fmt.Append(nil, key, rule), Cost: 1, Lease: lease, Results: make([]core.Result, 1)})
				}
				if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
					t.Fatal(err)
				}
				return batch
			}
			all := &core.Batch{}
			for i := range keys {
				key := fmt.Sprint(i)
				held := take(key, uint64(i+1))
				if denied := take(key, uint64(i+1001)); !held.Allowed || denied.Allowed {
					t.Errorf("key %s: %v, then %v", key, held.Allowed, denied.Allowed)
				}
				all.Items = append(all.Items, held.Items...)
			}

			// Who has a slot of the second rule's key only in the way takes none of the first rule's.
			one := &core.Batch{Items: all.Items[:1:1]}
			if err := storetest.Do(t.Context(), b, core.OpRelease, one); err != nil {
				t.Fatal(err)
			}
			if d := take("0", 5000); d.Allowed {
				t.Error("half of it is held, and it is allowed")
			}
			peek := &core.Batch{Items: []core.Item{{Key: []byte("00"), Results: make([]core.Result, 1)}}}
			if err := storetest.Do(t.Context(), b, core.OpPeek, peek); err != nil || peek.Items[0].Results[0].Remaining != 1 {
				t.Errorf("%v: %d left of what a denied take has given back", err, peek.Items[0].Results[0].Remaining)
			}

			if err := storetest.Do(t.Context(), b, core.OpRenew, all); err != nil {
				t.Error(err)
			}
			if d := take("0", 5001); d.Allowed {
				t.Error("a renewal does not count")
			}
			for range 2 {
				if err := storetest.Do(t.Context(), b, core.OpRelease, all); err != nil {
					t.Error(err)
				}
			}
			for i := range keys {
				if d := take(fmt.Sprint(i), uint64(i+9001)); !d.Allowed {
					t.Errorf("key %d is held", i)
				}
			}
		})
	}
}
