package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// movable listens at an address whose new connections go to the target of the moment,
// as those of a service name or a virtual address do. Connections that exist stay.
func movable(t *testing.T, target *atomic.Value) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target.Load().(string))
			if err != nil {
				_ = near.Close()
				continue
			}
			for from, to := range map[net.Conn]net.Conn{near: far, far: near} {
				go func() {
					_, _ = io.Copy(to, from)
					_ = to.Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}

// The primary behind an address has become a replica, and new connections find the new
// one. The store leaves the old one, like the client does for other commands.
func TestAPrimaryThatIsDemotedIsLeft(t *testing.T) { versions(t, demotedPrimary) }

func demotedPrimary(t *testing.T) {
	for _, atOnce := range []int{1, 20} {
		t.Run(fmt.Sprint(atOnce, " callers"), func(t *testing.T) {
			before, after := redistest.Start(t), redistest.Start(t)
			var target atomic.Value
			target.Store(before.Addr)
			client := redis.NewClient(&redis.Options{Addr: movable(t, &target), PoolSize: 4})
			defer client.Close() //nolint:errcheck // the test is over
			b := bind(t, client, hourly, redisstore.Timeout(patience))
			together(8, func(i int) { take(t, b, fmt.Sprint("before", i)) })
			target.Store(after.Addr)
			before.MustDo("REPLICAOF", "127.0.0.1", "1")
			for round := range 5 {
				together(atOnce, func(i int) { take(t, b, fmt.Sprint("after", round, "-", i)) })
			}
			primary := bind(t, newClient(t, after.Addr), hourly, redisstore.Timeout(patience))
			if got := charged(t, primary, "after4-0"); got != 1 {
				t.Errorf("the new primary has charged %d, want 1", got)
			}
		})
	}
}

// The first replies to a crowd are lost. Those who wait are sent all the same, again
// and again, until replies come.
func TestLostRepliesDoNotHoldUpACrowd(t *testing.T) {
	t.Parallel()
	const lost, crowd = 6, 600
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr, PoolSize: 50})
	defer client.Close() //nolint:errcheck // the test is over
	b := bind(t, client, hourly, redisstore.Timeout(5*time.Second))
	together(50, func(i int) { take(t, b, fmt.Sprint("warm", i)) })
	proxy.Fail(faultproxy.Swallow, lost)
	var decided atomic.Int64
	together(crowd, func(i int) {
		if storetest.Do(context.Background(), b, core.OpTake, one(fmt.Sprint("k", i), 1, 1)) == nil {
			decided.Add(1)
		}
	})
	proxy.CutAll()
	if decided.Load() < crowd-lost*64 {
		t.Errorf("%d of %d decided after %d lost replies, want all but 64 for each", decided.Load(), crowd, lost)
	}
}

// A slot moves, and one of two keys has moved already. No command decides on both keys
// then.
func TestDecisionsOnBothSidesOfAMovingSlot(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(1_000_000)}}}
	b := bind(t, client, rules, redisstore.Timeout(patience))
	keys, slot := keysOfOneSlot(t, cluster)
	for _, key := range keys {
		take(t, b, key)
	}
	from, to := cluster.Owner(slot), cluster.Nodes[0]
	if to == from {
		to = cluster.Nodes[1]
	}
	to.MustDo("CLUSTER", "SETSLOT", fmt.Sprint(slot), "IMPORTING", from.ID())
	from.MustDo("CLUSTER", "SETSLOT", fmt.Sprint(slot), "MIGRATING", to.ID())
	from.MustDo("MIGRATE", "127.0.0.1", to.Port(), stored(t, keys[0]), "0", "5000")
	together(20, func(i int) {
		for range 50 {
			take(t, b, keys[i%2])
		}
	})
	for _, key := range keys {
		peek := one(key, 0, 1)
		if err := storetest.Do(context.Background(), b, core.OpTake, peek); err != nil {
			t.Fatal(err)
		}
		if got := 1_000_000 - peek.Items[0].Results[0].Remaining; got != 501 {
			t.Errorf("key %s: %d charged, want 501", key, got)
		}
	}
}

func keysOfOneSlot(t *testing.T, cluster *redistest.Cluster) (keys []string, slot int) {
	first := map[int]string{}
	for i := 0; ; i++ {
		key := fmt.Sprint("k", i)
		slot := slotOf(cluster.Nodes[0], stored(t, key))
		if other, found := first[slot]; found {
			return []string{other, key}, slot
		}
		first[slot] = key
	}
}

// Two keys need two commands. A caller who hangs up between them is charged for both.
func TestWhoHangsUpIsChargedForKeysOfSeveralServers(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	keys := keysOn(cluster, bindName(t))
	for n := range 10 {
		batch := &core.Batch{}
		for _, key := range keys {
			batch.Items = append(batch.Items, one(key, 1, 1).Items...)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if n%2 == 0 {
			cancel()
		} else {
			time.AfterFunc(time.Duration(n)*100*time.Microsecond, cancel)
		}
		if err := storetest.Do(ctx, b, core.OpTake, batch); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		cancel()
	}
	for _, key := range keys {
		processtest.WaitFor(t, "the charges of "+key, func() bool { return charged(t, b, key) == 10 })
	}
	// Of a denied one, nothing stays charged on any server.
	batch := &core.Batch{}
	for _, key := range append([]string{"fresh"}, keys...) {
		batch.Items = append(batch.Items, one(key, 1, 1).Items...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := storetest.Do(ctx, b, core.OpTake, batch); err != nil || batch.Allowed || batch.Items[1].Results[0].Allowed || batch.Items[1].Results[0].RetryAfter == 0 {
		t.Errorf("error %v, results %+v, want a denial", err, batch.Items)
	}
	if got := charged(t, b, "fresh"); got != 0 {
		t.Errorf("%d charged by a denied take", got)
	}
}

// A function of the script takes some thousands of arguments at most.
func TestResetOfVeryManyKeys(t *testing.T) {
	b := bind(t, newClient(t, redistest.Start(t).Addr), hourly, redisstore.Timeout(patience))
	batch := &core.Batch{}
	for i := range 9000 {
		batch.Items = append(batch.Items, one(fmt.Sprint("k", i), 1, 1).Items...)
	}
	last := []int{0, 999, 1000, 8999}
	for _, i := range last {
		take(t, b, fmt.Sprint("k", i))
	}
	if err := storetest.Do(t.Context(), b, core.OpReset, batch); err != nil {
		t.Fatal(err)
	}
	for _, i := range last {
		if got := charged(t, b, fmt.Sprint("k", i)); got != 0 {
			t.Errorf("k%d: %d charged after the reset", i, got)
		}
	}
}

// A caller whose context has a deadline before the store's stops waiting then, also if
// the client keeps deadlines.
func TestTheCallersOwnDeadlineEndsTheWaiting(t *testing.T) {
	server := redistest.Start(t)
	client := core.Must(redisstore.NewClient("redis://" + server.Addr))
	defer client.Close() //nolint:errcheck // the test is over
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	take(t, b, "k")
	server.MustDo("CLIENT", "PAUSE", "20000", "WRITE") // scripts too
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := storetest.Do(ctx, b, core.OpTake, one("k", 1, 1))
	server.MustDo("CLIENT", "UNPAUSE")
	var e *redisstore.Error
	if !errors.As(err, &e) || e.Class != redisstore.ClassCanceled || !e.Unknown || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want one that says that the caller's context has ended", err)
	}
	processtest.WaitFor(t, "the charge", func() bool { return charged(t, b, "k") == 2 })
}
