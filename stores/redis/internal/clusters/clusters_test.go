// Package clusters_test runs the tests of package storetest on stores/redis with Redis Cluster. They are
// apart from the tests of stores/redis so that go test runs both at the same time.
package clusters_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onCluster starts a cluster, and returns what makes stores that count on it. Their timeout never
// passes: the suite tests decisions, on machines that may be busy.
func onCluster(t *testing.T) storetest.Factory {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.StartCluster(t, 3).Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	return func(_ testing.TB, clock func() time.Time) core.Store {
		opts := []redisstore.Option{redisstore.Timeout(20 * time.Second), redisstore.WithoutDenialCache(), redisstore.AnotherInstance()}
		if clock != nil {
			opts = append(opts, redisstore.Clock(clock))
		}
		return redisstore.New(client, opts...)
	}
}

func TestVectors(t *testing.T) {
	t.Parallel()
	storetest.Vectors(t, onCluster(t))
}

func TestOperations(t *testing.T) {
	t.Parallel()
	storetest.Operations(t, onCluster(t))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, onCluster(t), storetest.GivesBack())
}
