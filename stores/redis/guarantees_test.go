package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

func TestGuarantees(t *testing.T) {
	t.Parallel()
	t.Run("Single", func(t *testing.T) {
		server := redistest.Start(t)
		storetest.Guarantees(t, core.Guarantees{Ops: core.AllOps, Exact: true, Shared: true, OnFailure: core.FailClosed, KeepsDeadline: true, OneStep: true}, func(t testing.TB) storetest.Instances {
			proxy := faultproxy.Start(t, server.Addr)
			store := func() core.Store {
				return redisstore.New(newClient(t, proxy.Addr), redisstore.Timeout(2*time.Second), redisstore.AnotherInstance())
			}
			return storetest.Instances{Stores: []core.Store{store(), store()}, Gone: func() { proxy.Fail(faultproxy.Swallow, -1) }}
		})
	})
	t.Run("Cluster", func(t *testing.T) {
		cluster, _ := newCluster(t)
		storetest.Guarantees(t, core.Guarantees{Ops: core.AllOps, Exact: true, Shared: true, OnFailure: core.FailClosed, KeepsDeadline: true}, func(t testing.TB) storetest.Instances {
			store := func() core.Store {
				c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
				t.Cleanup(func() { _ = c.Close() })
				return redisstore.New(c, redisstore.Timeout(patience), redisstore.AnotherInstance())
			}
			return storetest.Instances{Stores: []core.Store{store(), store()}}
		})
	})
}
