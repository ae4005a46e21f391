package redisstore_test

import (
	"context"
	"errors"
	"fmt"
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

// Several instances share one limit to the unit.
func TestFourInstancesAdmitExactlyTheQuota(t *testing.T) {
	server := redistest.Start(t)
	for _, l := range all(20) {
		t.Run(l.Name, func(t *testing.T) {
			rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{l}}}
			var instances []core.Counters
			for range 4 {
				instances = append(instances, bind(t, newClient(t, server.Addr), rules, redisstore.Timeout(patience)))
			}
			var admitted atomic.Int64
			together(640, func(i int) {
				if take(t, instances[i%4], "k").Allowed {
					admitted.Add(1)
				}
			})
			if admitted.Load() != 20 {
				t.Errorf("%d of 640 admitted, want 20", admitted.Load())
			}
		})
	}
}

func TestFiveHundredCallersOfOneKey(t *testing.T) {
	b := bind(t, newClient(t, redistest.Start(t).Addr), hourly, redisstore.Timeout(patience))
	var admitted atomic.Int64
	together(512, func(int) {
		if take(t, b, "k").Allowed {
			admitted.Add(1)
		}
	})
	if admitted.Load() != 10 {
		t.Errorf("%d admitted, want 10", admitted.Load())
	}
}

func slotOf(s *redistest.Server, name string) int {
	slot, _ := strconv.Atoi(strings.TrimPrefix(s.MustDo("CLUSTER", "KEYSLOT", name), ":"))
	return slot
}

// A slot moves to another node under load; every take is charged
// once.
func TestMovingSlotsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	const quota = 100_000
	rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(quota)}}}
	b := bind(t, client, rules, redisstore.Timeout(patience))
	take(t, b, "k")
	name := core.StoreRule{Name: "r"}.StoredKey(t.Name(), []byte("k"))
	slot := slotOf(cluster.Nodes[0], name)

	var allowed atomic.Int64
	allowed.Add(1)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := storetest.Do(context.Background(), b, core.OpTake, one("k", 1, 1)); err != nil {
					t.Errorf("Take: %v", err)
					return
				}
				allowed.Add(1)
			}
		})
	}
	for range 6 {
		from := cluster.Owner(slot)
		to := cluster.Nodes[0]
		if to == from {
			to = cluster.Nodes[1]
		}
		before := allowed.Load()
		to.MustDo("CLUSTER", "SETSLOT", fmt.Sprint(slot), "IMPORTING", from.ID())
		from.MustDo("CLUSTER", "SETSLOT", fmt.Sprint(slot), "MIGRATING", to.ID())
		processtest.WaitFor(t, "takes while the slot is about to move", func() bool { return allowed.Load() > before+50 || t.Failed() })
		from.MustDo("MIGRATE", "127.0.0.1", to.Port(), name, "0", "5000")
		before = allowed.Load()
		processtest.WaitFor(t, "takes while the key has moved and the slot has not", func() bool { return allowed.Load() > before+50 || t.Failed() })
		to.MustDo("CLUSTER", "SETSLOT", fmt.Sprint(slot), "NODE", to.ID())
		from.MustDo("CLUSTER", "SETSLOT", fmt.Sprint(slot), "NODE", to.ID())
		before = allowed.Load()
		processtest.WaitFor(t, "takes after the slot has moved", func() bool { return allowed.Load() > before+50 || t.Failed() })
	}
	stop()
	wg.Wait()
	peek := one("k", 0, 1)
	if err := storetest.Do(context.Background(), b, core.OpTake, peek); err != nil {
		t.Fatal(err)
	}
	if got := quota - peek.Items[0].Results[0].Remaining; got != allowed.Load() {
		t.Errorf("%d charged, %d admitted", got, allowed.Load())
	}
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

// Keys of different slots are taken together or not at all; also
// where the client does not say that it speaks to a cluster.
func TestKeysOfDifferentSlots(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	for name, c := range map[string]redisstore.Client{"ClusterClient": client, "Wrapped": struct{ redisstore.Client }{client}} {
		t.Run(name, func(t *testing.T) {
			b := bind(t, c, hourly, redisstore.Timeout(patience))
			keys := keysOn(cluster, strings.ReplaceAll(t.Name(), "/", "."))
			for range 10 {
				take(t, b, keys[2])
			}
			batch := &core.Batch{}
			for _, k := range keys {
				batch.Items = append(batch.Items, one(k, 1, 1).Items...)
			}
			if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed {
				t.Fatalf("allowed %v, error %v", batch.Allowed, err)
			}
			for i, want := range []int64{0, 0, 10} {
				if got := charged(t, b, keys[i]); got != want {
					t.Errorf("key %d: %d charged, want %d", i, got, want)
				}
				if got := batch.Items[i].Results[0]; got.Remaining != 10-want || got.Allowed != (want == 0) {
					t.Errorf("key %d: result %+v", i, got)
				}
			}
		})
	}
}

// A node is lost: its keys fail, those of the others go on, and what
// was taken of them with a lost one is given back.
func TestALostNode(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(10)}}}
	b := bind(t, client, rules, redisstore.Timeout(2*time.Second))
	keys := keysOn(cluster, t.Name())
	for _, k := range keys {
		take(t, b, k)
	}
	cluster.Nodes[2].Stop()
	batch := &core.Batch{}
	for _, k := range keys {
		batch.Items = append(batch.Items, one(k, 1, 1).Items...)
	}
	err := storetest.Do(t.Context(), b, core.OpTake, batch)
	var e *redisstore.Error
	if !errors.As(err, &e) {
		t.Errorf("error %v", err)
	}
	for _, k := range keys[:2] {
		processtest.WaitFor(t, "what was taken to be given back", func() bool { return charged(t, b, k) == 1 })
	}
}

// The primary dies, and a replica takes its place. The count may go
// back to what the replica had, and no further.
func TestAFailoverKeepsWhatWasReplicated(t *testing.T) {
	t.Parallel()
	f := redistest.StartFailover(t)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: f.Name, SentinelAddrs: []string{f.Sentinel.Addr}})
	t.Cleanup(func() { _ = client.Close() })
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	for range 4 {
		take(t, b, "k")
	}
	processtest.WaitFor(t, "the replica to have it", f.Replicated)
	f.Primary.Stop()
	processtest.WaitFor(t, "a take on the new primary", func() bool {
		return storetest.Do(context.Background(), b, core.OpTake, one("k", 0, 1)) == nil
	})
	take(t, b, "k")
	if got := charged(t, b, "k"); got != 5 {
		t.Errorf("%d charged, want the 4 that were replicated and one", got)
	}
}

// A Ring splits keys between servers that know nothing of each other.
func TestARing(t *testing.T) {
	a, z := redistest.Start(t), redistest.Start(t)
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": a.Addr, "z": z.Addr}})
	t.Cleanup(func() { _ = client.Close() })
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	for range 2 {
		batch := &core.Batch{}
		for i := range 20 {
			batch.Items = append(batch.Items, one(fmt.Sprint(i), 5, 1).Items...)
		}
		if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
			t.Fatalf("allowed %v, error %v", batch.Allowed, err)
		}
	}
	if a.MustDo("DBSIZE") == ":0" || z.MustDo("DBSIZE") == ":0" {
		t.Error("all keys are on one server: the test shows nothing")
	}
	if err := storetest.Do(t.Context(), b, core.OpTake, one("3", 1, 1)); err != nil || take(t, b, "3").Allowed {
		t.Errorf("a key is not over its limit: %v", err)
	}
}

// refusing makes a client fail the calls with a verb for one key, without sending them.
type refusing struct{ name, verb string }

var errRefused = errors.New("refused by the test")

func (refusing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (refusing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h refusing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 4 && args[3] == h.name && redisstore.Verbs(cmd)[0] == h.verb {
			return errRefused
		}
		return next(ctx, cmd)
	}
}

// A take that fails when others have been taken already gives these back.
func TestATakeThatFailsHalfwayIsGivenBack(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	keys := keysOn(cluster, t.Name())
	client.AddHook(refusing{core.StoreRule{Name: "r"}.StoredKey(t.Name(), []byte(keys[2])), "take"})
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	batch := &core.Batch{}
	for _, k := range keys {
		batch.Items = append(batch.Items, one(k, 1, 1).Items...)
	}
	err := storetest.Do(t.Context(), b, core.OpTake, batch)
	var e *redisstore.Error
	if !errors.Is(err, errRefused) || !errors.As(err, &e) || e.Unknown {
		t.Errorf("error %v, want that of the hook, of a command that was not sent", err)
	}
	if errors.Is(err, core.ErrNotCharged) {
		t.Errorf("error %v: says that nothing was charged, while others are given back", err)
	}
	for _, k := range keys {
		processtest.WaitFor(t, "what was taken to be given back", func() bool { return charged(t, b, k) == 0 })
	}
}

// before is a hook that calls f once, before the first command with this verb for
// a key is sent, and fails the command if f returns an error.
type before struct {
	verb, name string
	f          func() error
	called     *atomic.Bool
}

func (before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 4 && args[3] == h.name && redisstore.Verbs(cmd)[0] == h.verb && h.called.CompareAndSwap(false, true) {
			if err := h.f(); err != nil {
				return err
			}
		}
		return next(ctx, cmd)
	}
}

// Between the look at the last of several keys in different slots and its take,
// somebody else uses it up: what was taken of the others is given back before the
// decision is made, and the results say so.
func TestATakeThatIsOvertakenIsGivenBack(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	keys := keysOn(cluster, t.Name())
	rival := bind(t, client, hourly, redisstore.Timeout(patience))
	own := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = own.Close() })
	use := func() error {
		for range 10 {
			take(t, rival, keys[2])
		}
		return nil
	}
	own.AddHook(before{"take", stored(t, keys[2]), use, new(atomic.Bool)})
	b := bind(t, own, hourly, redisstore.Timeout(patience))
	batch := &core.Batch{}
	for _, k := range keys {
		batch.Items = append(batch.Items, one(k, 1, 1).Items...)
	}
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed {
		t.Fatalf("allowed %v, error %v", batch.Allowed, err)
	}
	for i, want := range []int64{10, 10, 0} {
		if got := batch.Items[i].Results[0].Remaining; got != want {
			t.Errorf("key %d: the decision says that %d remain, want %d", i, got, want)
		}
		if got := 10 - charged(t, rival, keys[i]); got != want {
			t.Errorf("key %d: %d remain, want %d", i, got, want)
		}
	}
}

// A client may speak to a cluster without saying so. Its first decision on keys of several
// slots is refused, and then made again as the same operation.
func TestWhatIsDecidedAgainForKeysOfSeveralSlots(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	rival := bind(t, client, hourly, redisstore.Timeout(patience))
	keys := keysOn(cluster, t.Name())
	for name, row := range map[string]struct {
		cost    int64
		op      core.Op
		charged int64 // of each key afterwards
	}{
		"a peek":                      {3, core.OpPeek, 4},
		"a grant":                     {3, core.OpGrant, 1},
		"a charge above what is left": {8, core.OpCharge, 10},
	} {
		b := bind(t, struct{ redisstore.Client }{client}, hourly, redisstore.Timeout(patience))
		batch, begin := &core.Batch{}, &core.Batch{}
		for _, k := range keys {
			batch.Items = append(batch.Items, one(k, row.cost, 1).Items...)
			begin.Items = append(begin.Items, one(k, 4, 1).Items...)
		}
		if err := errors.Join(storetest.Do(t.Context(), rival, core.OpReset, begin), storetest.Do(t.Context(), rival, core.OpCharge, begin)); err != nil {
			t.Fatal(err)
		}
		if err := storetest.Do(t.Context(), b, row.op, batch); err != nil || !batch.Allowed {
			t.Errorf("%s: allowed %t, error %v", name, batch.Allowed, err)
		}
		for i, k := range keys {
			if got := charged(t, rival, k); got != row.charged {
				t.Errorf("%s: key %d: %d charged, want %d", name, i, got, row.charged)
			}
		}
	}
}

// If one key cannot be given back, the others are all the same.
func TestWhatCannotBeGivenBackKeepsNoOther(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	keys := keysOn(cluster, t.Name())
	rival := bind(t, client, hourly, redisstore.Timeout(patience))
	own := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = own.Close() })
	use := func() error {
		for range 10 {
			take(t, rival, keys[2])
		}
		return nil
	}
	own.AddHook(before{"take", stored(t, keys[2]), use, new(atomic.Bool)})
	own.AddHook(before{"back", stored(t, keys[0]), func() error { return errRefused }, new(atomic.Bool)})
	b := bind(t, own, hourly, redisstore.Timeout(patience))
	batch := &core.Batch{}
	for _, k := range keys {
		batch.Items = append(batch.Items, one(k, 1, 1).Items...)
	}
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); !errors.Is(err, errRefused) {
		t.Fatalf("error %v", err)
	}
	processtest.WaitFor(t, "the second key to be given back", func() bool { return charged(t, rival, keys[1]) == 0 })
	if got := charged(t, rival, keys[0]); got != 1 {
		t.Errorf("the first key: %d charged, want 1", got)
	}
}

// A reset or a refund of several keys is done for those whose server answers, and
// returns the error of the others.
func TestAResetOfSeveralKeysIsDoneForTheOthers(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	keys := keysOn(cluster, t.Name())
	client.AddHook(before{"reset", stored(t, keys[0]), func() error { return errRefused }, new(atomic.Bool)})
	client.AddHook(before{"refund", stored(t, keys[0]), func() error { return errRefused }, new(atomic.Bool)})
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	batch := &core.Batch{}
	for _, k := range keys {
		take(t, b, k)
		batch.Items = append(batch.Items, one(k, 1, 1).Items...)
	}
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
		t.Fatalf("allowed %v, error %v", batch.Allowed, err)
	}
	for what, f := range map[string]func() error{
		"refund": func() error { return storetest.Do(t.Context(), b, core.OpRefund, batch) },
		"reset":  func() error { return storetest.Do(t.Context(), b, core.OpReset, batch) },
	} {
		if err := f(); !errors.Is(err, errRefused) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	for i, want := range []int64{2, 0, 0} {
		if got := charged(t, b, keys[i]); got != want {
			t.Errorf("key %d: %d charged, want %d", i, got, want)
		}
	}
}
