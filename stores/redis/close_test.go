package redisstore_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// A process binds a limiter's name once for each server, whatever the number of
// Store values and clients.
func TestANameIsBoundOnceForAServer(t *testing.T) {
	addr := redistest.Start(t).Addr
	first := redisstore.New(newClient(t, addr))
	defer first.Close() //nolint:errcheck // never fails
	if _, err := first.Open("names", hourly); err != nil {
		t.Fatal(err)
	}
	other := redisstore.New(newClient(t, addr))
	if _, err := other.Open("names", hourly); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `Name: "names": another store of this process already counts on redis `+addr) {
		t.Errorf("through another client: %v", err)
	}
	if _, err := core.New(core.Config{Name: "names", Store: other, Rules: []core.Rule{perHour("r", 1)}}); !errors.Is(err, core.ErrConfig) {
		t.Errorf("core.New: %v", err)
	}
	two := redis.NewClient(&redis.Options{Addr: addr, DB: 2})
	defer two.Close() //nolint:errcheck // the test is over
	for what, s := range map[string]*redisstore.Store{
		"in another database": redisstore.New(two),
		"on another server":   redisstore.New(newClient(t, "127.0.0.1:1")),
		"another instance":    redisstore.New(newClient(t, addr), redisstore.AnotherInstance()),
	} {
		if _, err := s.Open("names", hourly); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		_ = s.Close()
	}
	_ = first.Close()
	if _, err := other.Open("names", hourly); err != nil {
		t.Errorf("after the first store was closed: %v", err)
	}
	_ = other.Close()
}

// Clients that do not tell their server are their own, and so are clusters and
// rings by their addresses.
func TestTheServersOfOtherClients(t *testing.T) {
	sentinel := func() *redis.Client {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	}
	cluster := func(addrs ...string) *redis.ClusterClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	}
	found := func() *redis.ClusterClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return nil, errRefused }})
	}
	ring := func(addr string) *redis.Ring {
		return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": addr, "b": "127.0.0.1:3"}, HeartbeatFrequency: 1 << 40})
	}
	for name, c := range map[string]struct {
		a, b redisstore.Client
		same bool
	}{
		"two sentinel clients":               {sentinel(), sentinel(), false},
		"one cluster in another order":       {cluster("127.0.0.1:1", "127.0.0.1:2"), cluster("127.0.0.1:2", "127.0.0.1:1"), true},
		"two clusters":                       {cluster("127.0.0.1:1"), cluster("127.0.0.1:2"), false},
		"two clusters that a function finds": {found(), found(), false},
		"one ring":                           {ring("127.0.0.1:1"), ring("127.0.0.1:1"), true},
		"one ring in another order": {
			redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1", "b": "127.0.0.1:2"}, HeartbeatFrequency: 1 << 40}),
			redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"c": "127.0.0.1:2", "d": "127.0.0.1:1"}, HeartbeatFrequency: 1 << 40}), true,
		},
		"one ring, two databases":                    {ring("127.0.0.1:1"), redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1", "b": "127.0.0.1:3"}, HeartbeatFrequency: 1 << 40, DB: 1}), false},
		"two rings":                                  {ring("127.0.0.1:1"), ring("127.0.0.1:2"), false},
		"clients of the application's own":           {&ownClient{}, &ownClient{}, false},
		"one client of the application's own, twice": {own, own, true},
	} {
		first, second := redisstore.New(c.a), redisstore.New(c.b)
		if _, err := first.Open("servers", hourly); err != nil {
			t.Fatal(err)
		}
		if _, err := second.Open("servers", hourly); errors.Is(err, core.ErrConfig) != c.same {
			t.Errorf("%s: %v, same %v", name, err, c.same)
		}
		for _, client := range []redisstore.Client{c.a, c.b} {
			if closer, ok := client.(interface{ Close() error }); ok {
				_ = closer.Close()
			}
		}
		_, _ = first.Close(), second.Close()
	}
}

type ownClient struct{ redisstore.Client }

var own = new(ownClient)

// A store that nothing refers to any more gives up its names.
func TestADroppedStoreGivesUpItsNames(t *testing.T) {
	client := newClient(t, "127.0.0.1:1")
	bindAndDrop := func() error {
		_, err := redisstore.New(client).Open("dropped", hourly)
		return err
	}
	if err := bindAndDrop(); err != nil {
		t.Fatal(err)
	}
	processtest.WaitFor(t, "the name to be given up", func() bool {
		runtime.GC()
		return bindAndDrop() == nil
	})
}

func TestAClosedStoreDoesNotCount(t *testing.T) {
	server := redistest.Start(t)
	for _, opts := range [][]redisstore.Option{nil, {redisstore.WithoutDenialCache()}} {
		s := redisstore.New(newClient(t, server.Addr), append(opts, redisstore.Timeout(patience))...)
		b, err := s.Open("closed", hourly)
		if err != nil {
			t.Fatal(err)
		}
		for range 300 { // some are denied, and that is remembered
			take(t, b, "k")
		}
		before := server.MustDo("GET", core.StoreRule{Name: "r"}.StoredKey("closed", []byte("k")))
		for range 2 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		batch := one("k", 1, 1)
		_, reopened := b.Reopen(hourly)
		_, opened := s.Open("closed", hourly)
		for what, err := range map[string]error{
			"Take": storetest.Do(context.Background(), b, core.OpTake, batch), "Refund": storetest.Do(context.Background(), b, core.OpRefund, batch), "Reset": storetest.Do(context.Background(), b, core.OpReset, batch),
			"Reopen": reopened, "Open": opened, "Ping": s.Ping(t.Context()),
			"Scan": s.Scan(t.Context(), "closed", hourly, func(redisstore.Stored) error { return nil }),
		} {
			if !errors.Is(err, core.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if after := server.MustDo("GET", core.StoreRule{Name: "r"}.StoredKey("closed", []byte("k"))); after != before {
			t.Error("a closed store has counted")
		}
	}
}
