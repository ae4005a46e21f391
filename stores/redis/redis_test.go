package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// patience is the suite's timeout, which never passes: the suite tests
// decisions, on machines that may be busy.
const patience = 20 * time.Second

func newClient(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func factory(client redisstore.Client) storetest.Factory {
	return func(_ testing.TB, clock func() time.Time) core.Store {
		opts := []redisstore.Option{redisstore.Timeout(patience), redisstore.WithoutDenialCache(), redisstore.AnotherInstance()}
		if clock != nil {
			opts = append(opts, redisstore.Clock(clock))
		}
		return redisstore.New(client, opts...)
	}
}

func newCluster(t testing.TB) (*redistest.Cluster, *redis.ClusterClient) {
	cluster := redistest.StartCluster(t, 3)
	return cluster, newClusterClient(t, cluster)
}

func newClusterClient(t testing.TB, cluster *redistest.Cluster) *redis.ClusterClient {
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Package internal/clusters runs the same three tests with Redis Cluster.

func TestVectors(t *testing.T) {
	t.Parallel()
	storetest.Vectors(t, factory(newClient(t, redistest.Start(t).Addr)))
}

func TestOperations(t *testing.T) {
	t.Parallel()
	storetest.Operations(t, factory(newClient(t, redistest.Start(t).Addr)))
}

func TestShared(t *testing.T) {
	t.Parallel()
	client := newClient(t, redistest.Start(t).Addr)
	storetest.Shared(t, func(t testing.TB, clocks ...func() time.Time) (stores []core.Store) {
		for _, clock := range clocks {
			stores = append(stores, factory(client)(t, clock))
		}
		return stores
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, factory(newClient(t, redistest.Start(t).Addr)))
}

// bindName is the name of the limiter that a test's stores bind.
func bindName(t testing.TB) string {
	return strings.NewReplacer("/", ".", "=", "-", "#", "-").Replace(t.Name())
}

// stored returns the name under which the test's rule "r" has a key.
func stored(t testing.TB, key string) string {
	return core.StoreRule{Name: "r"}.StoredKey(bindName(t), []byte(key))
}
