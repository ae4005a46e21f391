package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// BenchmarkTake compares takes with bare INCRs of the same client, by so many
// goroutines at a time, on keys of which there are a thousand: with the server
// on this machine, and as if it were a millisecond away.
func BenchmarkTake(b *testing.B) {
	server := redistest.Start(b)
	b.Run("here", func(b *testing.B) { benchmarkTake(b, server.Addr) })
	b.Run("1ms", func(b *testing.B) {
		proxy := faultproxy.Start(b, server.Addr)
		proxy.Delay(time.Millisecond)
		benchmarkTake(b, proxy.Addr)
	})
}

func benchmarkTake(b *testing.B, addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 256})
	b.Cleanup(func() { _ = client.Close() })
	three := []core.Limit{core.PerSecond(1e6), core.PerMinute(1e7), core.PerHour(1e8)}
	store := redisstore.New(client, redisstore.Timeout(patience))
	bound := func(name string, rules []core.StoreRule) core.Counters {
		return core.Must(store.Open(name, rules))
	}
	round := 0
	batches := func(rules []core.StoreRule) func(int) *core.Batch {
		return func(g int) *core.Batch {
			batch := new(core.Batch)
			for i, r := range rules {
				batch.Items = append(batch.Items, core.Item{Rule: i, Key: fmt.Append(nil, g), Cost: 1, Results: make([]core.Result, len(r.Limits))})
			}
			return batch
		}
	}
	for _, goroutines := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("INCR/%d", goroutines), func(b *testing.B) {
			measure(b, goroutines, func(g, i int) error {
				return client.Incr(context.Background(), fmt.Sprint("counter", (g*31+i)%1000)).Err()
			})
		})
		takes := func(name string, rules []core.StoreRule) {
			b.Run(fmt.Sprintf("%s/%d", name, goroutines), func(b *testing.B) {
				round++
				bound := bound(fmt.Sprint(name, round), rules)
				batch := batches(rules)
				own := make([]*core.Batch, goroutines)
				for g := range own {
					own[g] = batch(g)
				}
				measure(b, goroutines, func(g, i int) error {
					for j := range own[g].Items {
						own[g].Items[j].Key = fmt.Append(own[g].Items[j].Key[:0], (g*31+i)%1000)
					}
					return storetest.Do(context.Background(), bound, core.OpTake, own[g])
				})
			})
		}
		takes("1limit", []core.StoreRule{{Name: "ip", Limits: three[:1]}})
		takes("3limitsx2keys", []core.StoreRule{{Name: "ip", Limits: three}, {Name: "user", Limits: three}})
	}
}

// BenchmarkMemory reports how many bytes a key of one limit takes in Redis, as
// MEMORY USAGE says, the name of 35 bytes included.
func BenchmarkMemory(b *testing.B) {
	server := redistest.Start(b)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	b.Cleanup(func() { _ = client.Close() })
	store := redisstore.New(client, redisstore.Timeout(patience))
	limits := append(all(100), core.Limit{Name: "lockout", Quota: 100, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Factor: 2, Max: time.Hour, Decay: time.Hour}})
	for i, l := range limits {
		b.Run(l.Name, func(b *testing.B) {
			server.MustDo("FLUSHALL")
			bound := core.Must(store.Open(fmt.Sprint("m", i, b.N), []core.StoreRule{{Name: "ip", Limits: []core.Limit{l}}}))
			for n := range b.N {
				if err := storetest.Do(b.Context(), bound, core.OpTake, one(fmt.Sprint(n%1000), 100, 1)); err != nil {
					b.Fatal(err)
				}
			}
			keys, err := client.Keys(b.Context(), "*").Result()
			if err != nil {
				b.Fatal(err)
			}
			total := int64(0)
			for _, k := range keys {
				total += client.MemoryUsage(b.Context(), k).Val()
			}
			b.ReportMetric(float64(total)/float64(len(keys)), "B/key")
		})
	}
}

// measure runs f in so many goroutines and reports operations a second and
// latencies.
func measure(b *testing.B, goroutines int, f func(g, i int) error) {
	b.Helper()
	var next atomic.Int64
	latencies := make([][]time.Duration, goroutines)
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	begin := time.Now()
	for g := range goroutines {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				start := time.Now()
				if err := f(g, int(i)); err != nil {
					b.Error(err)
					return
				}
				latencies[g] = append(latencies[g], time.Since(start))
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(begin)
	all := slices.Concat(latencies...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/elapsed.Seconds(), "ops/s")
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
	}
}
