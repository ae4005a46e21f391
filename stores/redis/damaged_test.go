package redisstore_test

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// Whatever bytes of a stored state are changed, no operation on the key fails,
// and nothing remains above the quota.
func TestDamagedStatesFailNoOperation(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const quota = 20
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	lockout := core.Limit{
		Name: "lockout", Quota: quota, Window: time.Hour, Algorithm: core.FixedWindow,
		Lockout: core.Lockout{First: time.Minute, Factor: 3, Max: time.Hour, Decay: time.Hour},
	}
	for _, l := range append(all(quota), lockout) {
		t.Run(l.Name, func(t *testing.T) {
			clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
			rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{l}}}
			quiet := redisstore.Log(slog.New(slog.DiscardHandler))
			b := bind(t, client, rules, redisstore.Timeout(patience), redisstore.Clock(clock.Now), quiet)
			for i := range 300 {
				key := fmt.Sprint(i)
				for range 1 + r.IntN(8) {
					take(t, b, key)
					clock.Advance(time.Duration(r.Int64N(l.Window.Microseconds()/3)) * time.Microsecond)
				}
				name := stored(t, key)
				value := []byte(server.MustDo("GET", name))
				for range 1 + r.IntN(3) {
					value[1+r.IntN(len(value)-1)] = byte(r.IntN(256))
				}
				server.MustDo("SET", name, string(value))
				for _, cost := range []int64{1, 0, 3, quota} {
					batch := one(key, cost, 1)
					if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
						t.Fatalf("the value %x: %v", value, err)
					}
					if res := batch.Items[0].Results[0]; res.Remaining > quota {
						t.Fatalf("the value %x: %+v", value, res)
					}
					if err := storetest.Do(t.Context(), b, core.OpRefund, batch); err != nil {
						t.Fatalf("the value %x: %v", value, err)
					}
				}
			}
		})
	}
}

// A bucketed window whose total is not the sum of its buckets cannot be read.
// Package resilient around the store does not take it for an outage.
func TestABucketedWindowWithAWrongTotalIsUnreadable(t *testing.T) {
	server := redistest.Start(t)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	limit := core.Limit{Quota: 40, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute}
	quiet := slog.New(slog.DiscardHandler)
	direct := redisstore.New(newClient(t, server.Addr), redisstore.Timeout(patience), redisstore.Clock(clock.Now), redisstore.WithoutDenialCache(), redisstore.Log(quiet))
	store := core.Must(resilient.New(direct, resilient.Config{Failures: 1, Log: quiet}))
	b := core.Must(store.Open(bindName(t), []core.StoreRule{{Name: "r", Limits: []core.Limit{limit}}}))
	for n := range 20 { // as many buckets, of which the last may hold nothing
		key := fmt.Sprint(n)
		for range n {
			take(t, b, key)
			clock.Advance(time.Minute)
		}
		batch := take(t, b, key)
		if err := storetest.Do(t.Context(), b, core.OpRefund, batch); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			continue
		}
		const state = 18 // behind the version, the record's head and the limit's identity
		value := []byte(server.MustDo("GET", stored(t, key)))
		total := binary.LittleEndian.Uint32(value[state+6+7:])
		if total != uint32(n) {
			t.Fatalf("the total of %d hits is not where the test looks for it: %x", n, value)
		}
		binary.LittleEndian.PutUint32(value[state+6+7:], total+1)
		server.MustDo("SET", stored(t, key), string(value))
		if batch := take(t, b, key); batch.Degraded || batch.Items[0].Results[0].Remaining != 39 {
			t.Errorf("%d hits, and a total of one more: %+v, degraded %v", n, batch.Items[0].Results, batch.Degraded)
		}
		if !store.Up() {
			t.Fatal("one damaged counter was taken for an outage")
		}
	}
}

// Buckets that hold nothing are not stored before the first that does.
func TestTheOldestBucketsHoldHits(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute})
	first := f.take()
	one := len(f.value())
	f.clock.Advance(5 * time.Minute)
	f.take()
	if got, want := len(f.value()), one+5*4; got != want {
		t.Errorf("%d bytes, want %d: six buckets are stored", got, want)
	}
	if err := storetest.Do(t.Context(), f.bound, core.OpRefund, first); err != nil {
		t.Fatal(err)
	}
	if got := len(f.value()); got != one {
		t.Errorf("%d bytes, want %d: one bucket holds hits", got, one)
	}
}
