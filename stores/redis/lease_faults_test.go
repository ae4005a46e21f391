package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/leasetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

func TestFaultsBetweenAcquireRenewAndRelease(t *testing.T) {
	leasetest.Faults(t, redistest.Start(t).Addr, func(t *testing.T, addr string) core.Store {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		return redisstore.New(client, redisstore.Timeout(200*time.Millisecond), redisstore.AnotherInstance())
	})
}

func TestRequestsWaitForWhatRedisCounts(t *testing.T) {
	server := redistest.Start(t)
	leasetest.Waits(t, func(t *testing.T) core.Store {
		return redisstore.New(newClient(t, server.Addr), redisstore.Timeout(patience), redisstore.AnotherInstance())
	})
}
