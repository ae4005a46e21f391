package memcachedstore_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/leasetest"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
)

func TestFaultsBetweenAcquireRenewAndRelease(t *testing.T) {
	leasetest.Faults(t, memcachedtest.Start(t).Addr, func(t *testing.T, addr string) core.Store {
		return newStore(t, []string{addr}, memcachedstore.Timeout(200*time.Millisecond))
	})
}

func TestRequestsWaitForWhatMemcachedCounts(t *testing.T) {
	server := memcachedtest.Start(t)
	leasetest.Waits(t, func(t *testing.T) core.Store {
		return newStore(t, []string{server.Addr}, memcachedstore.Timeout(patience))
	})
}
