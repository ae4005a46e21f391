package redisstore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

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
