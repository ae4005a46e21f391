package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

func grant(ctx context.Context, b core.Counters, batch *core.Batch) error {
	return storetest.Do(ctx, b, core.OpGrant, batch)
}

// The reply to a grant is lost, and the client would send it again.
func TestAGrantWhoseReplyIsLostIsMadeOnce(t *testing.T) {
	clients(t, func(t *testing.T, client redisstore.Client, proxy *faultproxy.Proxy, server *redistest.Server) {
		b := bind(t, client, daily, redisstore.Timeout(patience))
		if err := storetest.Do(t.Context(), b, core.OpCharge, one("k", 100, 1)); err != nil {
			t.Fatal(err)
		}
		proxy.Fail(faultproxy.Cut, 1)
		if err := grant(t.Context(), b, one("k", 30, 1)); !unknown(err) {
			t.Errorf("error %v, want one that says that the hits may have been granted", err)
		}
		proxy.Fail(faultproxy.None, 0)
		if got := counted(t, b, "k"); got != 70 {
			t.Errorf("%d counted, want 100 less 30", got)
		}
		server.MustDo("SCRIPT", "FLUSH") // it has not run: it is sent again
		if err := grant(t.Context(), b, one("k", 5, 1)); err != nil {
			t.Errorf("a server that has forgotten the script: %v", err)
		}
		if got := counted(t, b, "k"); got != 65 {
			t.Errorf("%d counted, want 65", got)
		}
	})
}

// A grant whose caller hangs up is made, on one server and on several.
func TestAGrantWhoseCallerHangsUp(t *testing.T) {
	t.Parallel()
	cluster, several := newCluster(t)
	for name, client := range map[string]redisstore.Client{"Single": newClient(t, redistest.Start(t).Addr), "Cluster": several} {
		t.Run(name, func(t *testing.T) {
			b := bind(t, client, daily, redisstore.Timeout(patience))
			batch := &core.Batch{}
			for _, k := range keysOn(cluster, bindName(t)) {
				batch.Items = append(batch.Items, one(k, 50, 1).Items...)
			}
			if err := storetest.Do(t.Context(), b, core.OpCharge, batch); err != nil {
				t.Fatal(err)
			}
			for i := range batch.Items {
				batch.Items[i].Cost = 3
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = grant(ctx, b, batch)
			for _, it := range batch.Items {
				processtest.WaitFor(t, "the grants", func() bool { return counted(t, b, string(it.Key)) == 47 })
			}
		})
	}
}

// Grants to keys on several nodes go on when one of them fails, unless nothing has been
// granted yet: then they may be tried again.
func TestAGrantOfSeveralSlotsThatFailsForOne(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	for failing, want := range [][]int64{{9, 9, 9}, {5, 9, 5}, {5, 5, 9}} {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			keys := keysOn(cluster, bindName(t))
			client.AddHook(refusing{stored(t, keys[failing]), "grant"})
			b := bind(t, client, daily, redisstore.Timeout(patience))
			batch := &core.Batch{}
			for _, k := range keys {
				batch.Items = append(batch.Items, one(k, 9, 1).Items...)
			}
			if err := storetest.Do(t.Context(), b, core.OpCharge, batch); err != nil {
				t.Fatal(err)
			}
			for i := range batch.Items {
				batch.Items[i].Cost = 4
			}
			if err := grant(t.Context(), b, batch); !errors.Is(err, errRefused) || errors.Is(err, core.ErrNotCharged) != (failing == 0) {
				t.Errorf("error %v", err)
			}
			for i, k := range keys {
				if got := counted(t, b, k); got != want[i] {
					t.Errorf("key %d: %d counted, want %d", i, got, want[i])
				}
			}
		})
	}
}

// The value of a later version is not replaced by a grant, and one that cannot be read
// grants nothing.
func TestAGrantKeepsWhatItCannotRead(t *testing.T) {
	server := redistest.Start(t)
	b := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience))
	for value, fails := range map[string]bool{"\x03newer": true, "nonsense": false} {
		server.MustDo("SET", stored(t, "k"), value)
		if err := grant(t.Context(), b, one("k", 1, 1)); (err != nil) != fails {
			t.Errorf("%q: %v", value, err)
		}
		if got := server.MustDo("GET", stored(t, "k")); got != value {
			t.Errorf("%q became %q", value, got)
		}
	}
}
