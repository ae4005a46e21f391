package memcachedstore_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
)

func TestGuarantees(t *testing.T) {
	t.Parallel()
	server := memcachedtest.Start(t)
	storetest.Guarantees(t, core.Guarantees{Ops: core.AllOps &^ core.OpResetAll, Exact: true, Shared: true, KeepsDeadline: true, OnFailure: core.FailClosed}, func(t testing.TB) storetest.Instances {
		proxy := faultproxy.Start(t, server.Addr)
		store := func() core.Store { return newStore(t, []string{proxy.Addr}, memcachedstore.Timeout(2*time.Second)) }
		return storetest.Instances{Stores: []core.Store{store(), store()}, Gone: func() { proxy.Fail(faultproxy.Swallow, -1) }}
	})
}
