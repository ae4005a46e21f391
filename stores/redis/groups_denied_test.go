package redisstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// countsDenied are two rules of one limit, the first of which counts denied hits.
var countsDenied = []core.StoreRule{
	{Name: "r", Limits: []core.Limit{{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow, CountDenied: true}}},
	{Name: "s", Limits: []core.Limit{{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow}}},
}

// allCounted returns how many hits of a key are counted, also those above the quota.
func allCounted(t *testing.T, b core.Bound, rule int, key string) int64 {
	t.Helper()
	const quota = 1000
	batch := one(key, 0, 1)
	batch.Peek, batch.Items[0].Rule, batch.Items[0].Quotas = true, rule, []int64{quota}
	if err := b.Take(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return quota - batch.Items[0].Results[0].Remaining
}

// Of keys in different slots, those that deny a take count it, and the others are as they were.
func TestDeniedHitsOfKeysInDifferentSlots(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	for full := 1; full < 8; full++ { // as bits
		t.Run(fmt.Sprintf("%03b", full), func(t *testing.T) {
			keys := keysOn(cluster, bindName(t))
			b := bind(t, client, countsDenied, redisstore.Timeout(patience))
			own := newClusterClient(t, cluster)
			batch := &core.Batch{}
			for i, k := range keys {
				if full&(1<<i) != 0 {
					if err := b.Take(t.Context(), one(k, 10, 1)); err != nil {
						t.Fatal(err)
					}
				} else if i > 0 { // no command is sent for it, after the look
					own.AddHook(refusing{stored(t, k), "denied"})
				}
				batch.Items = append(batch.Items, one(k, 1, 1).Items...)
			}
			if err := bind(t, own, countsDenied, redisstore.Timeout(patience)).Take(t.Context(), batch); err != nil || batch.Allowed {
				t.Fatalf("allowed %t, %v", batch.Allowed, err)
			}
			for i, k := range keys {
				want, left, wait := int64(0), int64(10), time.Duration(0)
				if full&(1<<i) != 0 {
					want, left, wait = 11, 0, time.Hour
				}
				if got := allCounted(t, b, 0, k); got != want {
					t.Errorf("key %d: %d hits are counted, want %d", i, got, want)
				}
				r := batch.Items[i].Results[0]
				if r.Remaining != left || r.Allowed != (wait == 0) || r.RetryAfter > wait || r.RetryAfter < wait-time.Minute {
					t.Errorf("key %d: the decision says %+v, want %d left and a wait of %v", i, r, left, wait)
				}
			}
		})
	}
}

// If the command for one of several denied keys fails, the error says that nothing was charged only
// if no other key was charged.
func TestTheErrorOfDeniedKeysInDifferentSlots(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	for _, row := range []struct {
		name    string
		first   int // the rule of the first key
		verb    string
		fails   int
		want    bool // the error says that nothing was charged
		charged []int64
	}{
		{"the first of them", 0, "denied", 0, true, []int64{10, 10, 10}},
		{"the second one", 0, "denied", 1, false, []int64{11, 10, 10}},
		{"the last one", 0, "denied", 2, false, []int64{11, 11, 10}},
		{"the second one, and the first one counts nothing", 1, "denied", 1, true, []int64{10, 10, 10}},
		{"the last one, and the first one counts nothing", 1, "denied", 2, false, []int64{10, 11, 10}},
		{"the first one, which counts nothing", 1, "peek", 0, true, []int64{10, 10, 10}},
	} {
		t.Run(row.name, func(t *testing.T) {
			keys := keysOn(cluster, bindName(t))
			rules := []int{row.first, 0, 0}
			b := bind(t, client, countsDenied, redisstore.Timeout(patience))
			batch := &core.Batch{}
			for i, k := range keys {
				item := one(k, 10, 1)
				item.Items[0].Rule = rules[i]
				if err := b.Take(t.Context(), item); err != nil {
					t.Fatal(err)
				}
				item.Items[0].Cost = 1
				batch.Items = append(batch.Items, item.Items...)
			}
			own := newClusterClient(t, cluster)
			name := core.StoreRule{Name: countsDenied[rules[row.fails]].Name}.StoredKey(bindName(t), []byte(keys[row.fails]))
			own.AddHook(refusing{name, row.verb})
			err := bind(t, own, countsDenied, redisstore.Timeout(patience)).Take(t.Context(), batch)
			if !errors.Is(err, errRefused) || errors.Is(err, core.ErrNotCharged) != row.want {
				t.Errorf("%v: says that nothing was charged: %t, want %t", err, errors.Is(err, core.ErrNotCharged), row.want)
			}
			for i, k := range keys {
				if got := allCounted(t, b, rules[i], k); got != row.charged[i] {
					t.Errorf("key %d: %d hits are counted, want %d", i, got, row.charged[i])
				}
			}
		})
	}
}
