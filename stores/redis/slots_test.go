package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// The slots of a limiter are in one hash slot, so that one command renews all of them: on a cluster,
// on a client that shards by key, and on a server whose scripts have been flushed.
func TestSlotsOnSeveralServers(t *testing.T) {
	t.Parallel()
	_, cluster := newCluster(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr, "z": redistest.Start(t).Addr}})
	t.Cleanup(func() { _ = ring.Close() })
	for name, client := range map[string]redis.UniversalClient{"Cluster": cluster, "Ring": ring, "Client": newClient(t, redistest.Start(t).Addr)} {
		t.Run(name, func(t *testing.T) {
			s := redisstore.New(client, redisstore.Timeout(patience), redisstore.AnotherInstance())
			var all []inflight.Slot
			for i := range uint64(40) {
				slot := inflight.Slot{Key: fmt.Sprint(i / 2), ID: i + 1}
				for range 2 { // the second time, the slot is there already
					if held, ok, err := s.AcquireSlot(t.Context(), "l", slot, 2, time.Minute); err != nil || !ok || held != int64(i%2+1) {
						t.Fatalf("slot %d: %d, %t, %v", i, held, ok, err)
					}
				}
				all = append(all, slot)
			}
			if c, ok := client.(*redis.Client); ok {
				c.ScriptFlush(t.Context())
			}
			full := func() bool {
				_, ok, err := s.AcquireSlot(t.Context(), "l", inflight.Slot{Key: "7", ID: 100}, 2, time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				return !ok
			}
			if err := s.RenewSlots(t.Context(), "l", all, time.Minute); err != nil || !full() {
				t.Errorf("after a renewal: %v", err)
			}
			if _, ok, err := s.AcquireSlot(t.Context(), "another", inflight.Slot{Key: "7", ID: 100}, 1, time.Minute); !ok || err != nil {
				t.Errorf("of another limiter: %t, %v", ok, err)
			}
			for range 2 {
				if err := s.ReleaseSlots(t.Context(), "l", all); err != nil {
					t.Error(err)
				}
			}
			if full() {
				t.Error("full after the release")
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := s.ReleaseSlots(t.Context(), "l", all); !errors.Is(err, core.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

// A process that dies holds its slots for a lease, also if others hold slots of the key. If it has only
// stood still, its slots count again with its next renewal. A key without slots leaves nothing in Redis.
func TestSlotsEndWithTheirLease(t *testing.T) {
	t.Parallel()
	client := newClient(t, redistest.Start(t).Addr)
	s := redisstore.New(client, redisstore.Timeout(patience))
	began := time.Now()
	living := inflight.Slot{Key: "k", ID: 3}
	for i, slot := range []inflight.Slot{living, {Key: "k", ID: 1}} { // the shorter lease does not shorten the other
		if _, ok, err := s.AcquireSlot(t.Context(), "l", slot, 2, []time.Duration{time.Minute, time.Second}[i]); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	processtest.WaitFor(t, "the slot to be free", func() bool {
		_, ok, err := s.AcquireSlot(t.Context(), "l", inflight.Slot{Key: "k", ID: 2}, 2, time.Minute)
		return ok && err == nil
	})
	if took := time.Since(began); took < 990*time.Millisecond {
		t.Errorf("it is free after %v", took)
	}
	late := inflight.Slot{Key: "k", ID: 1}
	err := s.RenewSlots(t.Context(), "l", []inflight.Slot{late}, time.Hour)
	if kept := client.PTTL(t.Context(), "fgs1:{l}:glTDKakoUPbVOd03b0gW7g").Val(); err != nil || kept < 59*time.Minute || kept > time.Hour { // its name never changes
		t.Errorf("error %v, and the key of a slot with a lease of an hour lasts %v", err, kept)
	}
	if _, ok, err := s.AcquireSlot(t.Context(), "l", inflight.Slot{Key: "k", ID: 4}, 3, time.Minute); ok || err != nil {
		t.Errorf("a fourth slot of three: %t, %v", ok, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.ReleaseSlots(gone, "l", []inflight.Slot{living, late, {Key: "k", ID: 2}}) // its caller does not wait
	processtest.WaitFor(t, "the key to be gone", func() bool { return client.DBSize(t.Context()).Val() == 0 })
}
