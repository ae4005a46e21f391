package redisstore

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// renewed renews a lease of each key through a client that refuses commands, and returns how
// many keys each call had that the server has made.
func renewed(t *testing.T, refuse func(calls []int) error, keys int) (calls []int, s *Store, err error) {
	real := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	t.Cleanup(func() { _ = real.Close() })
	var mu sync.Mutex // several commands are sent at the same time
	s = New(process(func(cmd redis.Cmder) error {
		mu.Lock()
		defer mu.Unlock()
		var own []int
		for _, arg := range cmd.Args() {
			if x, ok := arg.(*exchange); ok {
				for _, c := range x.calls {
					own = append(own, len(c.items))
				}
			}
		}
		if err := refuse(own); err != nil {
			return err
		}
		err := real.Process(t.Context(), cmd)
		if err == nil { // and not that the server does not know the script yet
			calls = append(calls, own...)
		}
		return err
	}), Timeout(20*time.Second))
	s.gathers = false
	limit := core.Limit{Quota: 10, Window: time.Minute, Algorithm: core.Leases}
	batch := &core.Batch{}
	for i := range keys {
		batch.Items = append(batch.Items, core.Item{Key: fmt.Append(nil, i), Cost: 1, Lease: 1, Results: make([]core.Result, 1)})
	}
	err = storetest.Do(t.Context(), newCounters(s, t.Name(), []core.StoreRule{{Name: "r", Limits: []core.Limit{limit}}}), core.OpRenew, batch)
	return calls, s, err
}

// A call has no more than leasesTogether leases: the script keeps the server from others for a
// short time only.
func TestManyLeasesAreSeveralCalls(t *testing.T) {
	for keys, want := range map[int][]int{leasesTogether: {128}, leasesTogether + 1: {128, 1}, 300: {128, 128, 44}} {
		calls, _, err := renewed(t, func([]int) error { return nil }, keys)
		total := 0
		for _, n := range calls {
			if total += n; n > leasesTogether {
				t.Errorf("a call has %d leases", n)
			}
		}
		if err != nil || len(calls) != len(want) || total != keys {
			t.Errorf("%d leases: calls of %v, want %v; error %v", keys, calls, want, err)
		}
	}
}

// A server that refuses keys of several slots gets a call for each slot, from then on.
func TestLeasesOfAServerThatTakesOneSlotAtATime(t *testing.T) {
	refused := 0
	calls, s, err := renewed(t, func(calls []int) error {
		for _, n := range calls {
			if n > 1 {
				refused++
				return scriptError("CROSSSLOT Keys in request don't hash to the same slot")
			}
		}
		return nil
	}, 2)
	if err != nil || len(calls) != 2 || refused != 1 || s.layout.Load() != oneSlot {
		t.Errorf("calls of %v leases, %d refused, layout %d, error %v", calls, refused, s.layout.Load(), err)
	}
}
