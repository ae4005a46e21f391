package redisstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// BenchmarkQuotas compares takes without quotas of their own, takes with one of four
// quotas, takes without a limit, and charges.
func BenchmarkQuotas(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr, PoolSize: 256})
	b.Cleanup(func() { _ = client.Close() })
	store := redisstore.New(client, redisstore.Timeout(patience))
	round := 0
	for _, c := range []struct {
		name   string
		quotas []int64
		op     core.Op
	}{
		{"own", nil, core.OpTake},
		{"quotas", []int64{2e6, 3e6, 4e6, 5e6}, core.OpTake},
		{"unlimited", []int64{core.Unlimited}, core.OpTake},
		{"charge", nil, core.OpCharge},
	} {
		for _, goroutines := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", c.name, goroutines), func(b *testing.B) {
				round++
				bound := core.Must(store.Open(fmt.Sprint("q", round), []core.StoreRule{{Name: "ip", Limits: []core.Limit{core.PerSecond(1e6)}}}))
				own := make([]*core.Batch, goroutines)
				for g := range own {
					own[g] = one("", 1, 1)
				}
				measure(b, goroutines, func(g, i int) error {
					it := &own[g].Items[0]
					it.Key = fmt.Append(it.Key[:0], (g*31+i)%1000)
					if c.quotas != nil {
						n := i % len(c.quotas)
						it.Quotas = c.quotas[n : n+1]
					}
					return storetest.Do(context.Background(), bound, c.op, own[g])
				})
			})
		}
	}
}
