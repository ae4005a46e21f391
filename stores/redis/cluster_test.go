package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// together runs f in n goroutines at once and waits for all.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func slotOf(s *redistest.Server, name string) int {
	slot, _ := strconv.Atoi(strings.TrimPrefix(s.MustDo("CLUSTER", "KEYSLOT", name), ":"))
	return slot
}

// keysOfOneSlot returns two keys of one slot.
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

// A slot moves to another node under load, one of its two keys after the other: every take is charged
// once, and no command decides on keys of both nodes.
func TestMovingSlotsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	b := bind(t, client, daily, redisstore.Timeout(patience))
	keys, slot := keysOfOneSlot(t, cluster)
	var allowed [2]atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := storetest.Do(context.Background(), b, core.OpTake, one(keys[i%2], 1, 1)); err != nil {
					t.Errorf("Take: %v", err)
					return
				}
				allowed[i%2].Add(1)
			}
		})
	}
	load := func(when string) {
		before := [2]int64{allowed[0].Load(), allowed[1].Load()}
		processtest.WaitFor(t, "takes "+when, func() bool {
			return allowed[0].Load() > before[0]+20 && allowed[1].Load() > before[1]+20 || t.Failed()
		})
	}
	load("before the slot moves")
	for range 3 {
		from, to := cluster.Owner(slot), cluster.Nodes[0]
		if to == from {
			to = cluster.Nodes[1]
		}
		to.MustDo("CLUSTER", "SETSLOT", fmt.Sprint(slot), "IMPORTING", from.ID())
		from.MustDo("CLUSTER", "SETSLOT", fmt.Sprint(slot), "MIGRATING", to.ID())
		load("while the slot is about to move")
		for _, key := range keys {
			from.MustDo("MIGRATE", "127.0.0.1", to.Port(), stored(t, key), "0", "5000")
			load("while a key has moved and the slot has not")
		}
		to.MustDo("CLUSTER", "SETSLOT", fmt.Sprint(slot), "NODE", to.ID())
		from.MustDo("CLUSTER", "SETSLOT", fmt.Sprint(slot), "NODE", to.ID())
		load("after the slot has moved")
	}
	stop()
	wg.Wait()
	for i, key := range keys {
		if got := counted(t, b, key); got != allowed[i].Load() {
			t.Errorf("%s: %d charged, %d admitted", key, got, allowed[i].Load())
		}
	}
}

// several makes a batch of these keys, with a cost of 1 each.
func several(keys []string) *core.Batch {
	batch := new(core.Batch)
	for _, k := range keys {
		batch.Items = append(batch.Items, one(k, 1, 1).Items...)
	}
	return batch
}

// keysOn returns a key on each node.
func keysOn(cluster *redistest.Cluster, limiter string) []string {
	keys := make([]string, len(cluster.Nodes))
	for i := range 1000 {
		key := fmt.Sprint("k", i)
		slot := slotOf(cluster.Nodes[0], core.StoreRule{Name: "r"}.StoredKey(limiter, []byte(key)))
		keys[slot*len(keys)/redistest.Slots] = key
	}
	return keys
}

// crossesSlots is the error of a server of a cluster for keys of several slots.
type crossesSlots struct{}

func (crossesSlots) Error() string { return "CROSSSLOT Keys in request don't hash to the same slot" }
func (crossesSlots) RedisError()   {}

// A proxy before a cluster does not say that it is one: its first error does. From then on, keys of
// several slots are decided with several commands.
func TestAProxyBeforeAClusterIsNoticed(t *testing.T) {
	for name, do := range map[string]func(b core.Counters){
		"keys of one decision": func(b core.Counters) {
			batch := several([]string{"a", "b", "c"})
			if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
				t.Errorf("allowed %v, error %v", batch.Allowed, err)
			}
		},
		"keys of several callers": func(b core.Counters) {
			together(100, func(i int) { take(t, b, fmt.Sprint(i)) })
		},
	} {
		client := newClient(t, redistest.Start(t).Addr)
		client.AddHook(onCommand(func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
			if args := cmd.Args(); strings.HasPrefix(cmd.Name(), "eval") {
				keys := args[3 : 3+args[2].(int)]
				if slices.ContainsFunc(keys, func(key any) bool { return key != keys[0] }) {
					return crossesSlots{}
				}
			}
			return next(ctx, cmd)
		}))
		store := redisstore.New(client, redisstore.Timeout(patience), redisstore.WithoutDenialCache(), redisstore.AnotherInstance())
		do(core.Must(store.Open(bindName(t), hourly)))
		if store.Guarantees().OneStep {
			t.Errorf("%s: the store still promises one step", name)
		}
	}
}

// A take that fails when others have been taken already gives these back, also if its time is up. Its
// error says that nothing was charged if it fails for the first key, or while the others are looked at.
func TestATakeThatFailsHalfwayIsGivenBack(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	for failing, verb := range []string{"take", "take", "take", "peek"} {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			keys := keysOn(cluster, bindName(t))
			timeout, fail, want := patience, refuse, errRefused
			if failing == 2 {
				timeout, fail, want = time.Second, func() error { <-t.Context().Done(); return errRefused }, context.DeadlineExceeded
			}
			own := newClusterClient(t, cluster)
			own.AddHook(before(verb, stored(t, keys[min(failing, 2)]), fail))
			err := storetest.Do(t.Context(), bind(t, own, hourly, redisstore.Timeout(timeout)), core.OpTake, several(keys))
			var e *redisstore.Error
			if !errors.Is(err, want) || !errors.As(err, &e) || e.Unknown || errors.Is(err, core.ErrNotCharged) != (failing == 0 || verb == "peek") {
				t.Errorf("error %v, want %v; nothing was charged: %t", err, want, failing == 0 || verb == "peek")
			}
			b := bind(t, client, hourly, redisstore.Timeout(patience))
			for _, k := range keys {
				processtest.WaitFor(t, "what was taken to be given back", func() bool { return charged(t, b, k) == 0 })
			}
		})
	}
}

// Between the look at the last of several keys in different slots and its take, somebody else uses it up: the
// request is denied, and what was taken of the others is given back, also if one of them cannot be.
func TestATakeThatIsOvertakenIsGivenBack(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprint(refused), func(t *testing.T) {
			keys := keysOn(cluster, bindName(t))
			rival := bind(t, client, hourly, redisstore.Timeout(patience))
			own := newClusterClient(t, cluster)
			own.AddHook(before("take", stored(t, keys[2]), sync.OnceValue(func() error {
				for range 10 {
					take(t, rival, keys[2])
				}
				return nil
			})))
			if refused {
				own.AddHook(before("refund", stored(t, keys[0]), refuse))
			}
			b := bind(t, own, hourly, redisstore.Timeout(patience))
			batch := several(keys)
			if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed {
				t.Fatalf("allowed %v, error %v", batch.Allowed, err)
			}
			for i, want := range []int64{0, 0, 10} {
				if refused && i == 0 {
					want = 1
				}
				processtest.WaitFor(t, "what was taken to be given back", func() bool { return charged(t, rival, keys[i]) == want })
			}
		})
	}
}

// A reset or a refund of several keys is done for those whose server answers, without waiting for the
// others, and returns the error of the others. The error does not wrap ErrNotCharged: nobody repeats the refund.
func TestAResetOfSeveralKeysIsDoneForTheOthers(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	keys := keysOn(cluster, t.Name())
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	for verb, left := range map[string]int64{"refund": 1, "reset": 0} {
		client.AddHook(before(verb, stored(t, keys[0]), func() error {
			processtest.WaitFor(t, "the "+verb+" of the last key", func() bool { return charged(t, b, keys[2]) <= left })
			return errRefused
		}))
	}
	for _, k := range keys {
		take(t, b, k)
	}
	batch := several(keys)
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
		t.Fatalf("allowed %v, error %v", batch.Allowed, err)
	}
	for what, f := range map[string]func() error{
		"refund": func() error { return storetest.Do(t.Context(), b, core.OpRefund, batch) },
		"reset":  func() error { return storetest.Do(t.Context(), b, core.OpReset, batch) },
	} {
		if err := f(); !errors.Is(err, errRefused) || errors.Is(err, core.ErrNotCharged) {
			t.Errorf("%s: error %v, want that of the hook, which says nothing of what was charged", what, err)
		}
	}
	for i, want := range []int64{2, 0, 0} {
		if got := charged(t, b, keys[i]); got != want {
			t.Errorf("key %d: %d charged, want %d", i, got, want)
		}
	}
}

// A reset of all forgets the keys of all rules, and those of no other limiter, on every server.
func TestAResetOfAllForgetsTheLimitersKeys(t *testing.T) {
	t.Parallel()
	_, several := newCluster(t)
	for name, client := range map[string]redis.UniversalClient{"Single": newClient(t, redistest.Start(t).Addr), "Cluster": several} {
		t.Run(name, func(t *testing.T) {
			store := redisstore.New(client, redisstore.Timeout(patience))
			rules := append([]core.StoreRule{{Name: "r2", Limits: hourly[0].Limits}}, hourly...)
			b, other := core.Must(store.Open("all"+name, rules)), core.Must(store.Open("all"+name+"2", rules))
			each := func(b core.Counters, f func(*core.Batch)) {
				for i := range 700 {
					batch := one(fmt.Sprint(i), 10, 1)
					batch.Items[0].Rule = i % 2
					f(batch)
				}
			}
			admits := func(b core.Counters, want bool) {
				t.Helper()
				each(b, func(batch *core.Batch) {
					if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed != want {
						t.Fatalf("key %s: allowed %v, want %v, error %v", batch.Items[0].Key, batch.Allowed, want, err)
					}
				})
			}
			admits(b, true)
			admits(other, true)
			admits(b, false)
			do(t, b, core.OpResetAll, new(core.Batch))
			admits(b, true)
			admits(other, false)
		})
	}
}

// change calls f for takes, charges and grants of a quarter, with a key on each node that has 40 hits.
func change(t *testing.T, cluster *redistest.Cluster, client redis.UniversalClient, f func(t *testing.T, b core.Counters, do core.Op, batch *core.Batch, after int64)) {
	for op, after := range map[core.Op]int64{core.OpTake: 50, core.OpCharge: 50, core.OpGrant: 30} {
		t.Run(op.String(), func(t *testing.T) {
			b := bind(t, client, daily, redisstore.Timeout(patience))
			batch := several(keysOn(cluster, bindName(t)))
			for range 40 {
				do(t, b, core.OpCharge, batch)
			}
			for i := range batch.Items {
				batch.Items[i].Cost = 10
			}
			f(t, b, op, batch, after)
		})
	}
}

// A client that hangs up is charged, or granted hits, on one server and on several.
func TestAChangeWhoseCallerHangsUp(t *testing.T) {
	t.Parallel()
	cluster, several := newCluster(t)
	for name, client := range map[string]redis.UniversalClient{"Single": newClient(t, redistest.Start(t).Addr), "Cluster": several} {
		t.Run(name, func(t *testing.T) {
			change(t, cluster, client, func(t *testing.T, b core.Counters, op core.Op, batch *core.Batch, after int64) {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				_ = storetest.Do(ctx, b, op, batch)
				for i := range batch.Items { // the caller's again
					batch.Items[i].Cost = 999
				}
				for _, it := range batch.Items {
					processtest.WaitFor(t, "the hits", func() bool { return counted(t, b, string(it.Key)) == after })
				}
			})
		})
	}
}

// A charge or grant to keys on several nodes goes on when one of them fails.
func TestAChargeOrGrantThatFailsForOneNode(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	for failing, done := range [][]bool{{false, true, true}, {true, false, true}, {true, true, false}} {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			change(t, cluster, client, func(t *testing.T, b core.Counters, op core.Op, batch *core.Batch, after int64) {
				if op == core.OpTake { // it does not go on
					return
				}
				client.AddHook(before(op.String(), stored(t, string(batch.Items[failing].Key)), sync.OnceValue(refuse)))
				if err := storetest.Do(t.Context(), b, op, batch); !errors.Is(err, errRefused) || errors.Is(err, core.ErrNotCharged) {
					t.Errorf("error %v", err)
				}
				for i, it := range batch.Items {
					want := int64(40)
					if done[i] {
						want = after
					}
					if got := counted(t, b, string(it.Key)); got != want {
						t.Errorf("key %d: %d counted, want %d", i, got, want)
					}
				}
			})
		})
	}
}
