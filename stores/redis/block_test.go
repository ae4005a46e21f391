package redisstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// A block denies its keys for its time and keeps what they have counted, also on a
// cluster. A block of no length ends it, and so does a reset.
func TestABlockDeniesItsKeys(t *testing.T) {
	t.Parallel()
	cluster, several := newCluster(t)
	for name, client := range map[string]redisstore.Client{"Single": newClient(t, redistest.Start(t).Addr), "Cluster": several} {
		t.Run(name, func(t *testing.T) {
			clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
			b := bind(t, client, hourly, redisstore.Timeout(patience), redisstore.Clock(clock.Now))
			batch := &core.Batch{}
			for _, k := range keysOn(cluster, bindName(t)) {
				batch.Items = append(batch.Items, one(k, 3, 1).Items...)
			}
			block := func(d time.Duration) {
				t.Helper()
				if err := block(t.Context(), b, batch, d); err != nil {
					t.Fatal(err)
				}
			}
			want := func(what string, left int64, wait time.Duration) {
				t.Helper()
				if err := storetest.Do(t.Context(), b, core.OpPeek, batch); err != nil || batch.Allowed != (wait == 0) {
					t.Errorf("%s: allowed %v, error %v", what, batch.Allowed, err)
				}
				for i := range batch.Items {
					if r := batch.Items[i].Results[0]; r.Remaining != left || r.RetryAfter != wait {
						t.Errorf("%s: key %d: %+v, want %d left after %v", what, i, r, left, wait)
					}
				}
			}
			block(0)
			if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
				t.Fatalf("allowed %v, error %v", batch.Allowed, err)
			}
			block(10 * time.Minute)
			want("blocked", 0, 10*time.Minute)
			block(2 * time.Minute)
			want("blocked for a shorter time", 0, 2*time.Minute)
			clock.Advance(2*time.Minute - time.Microsecond)
			want("before the end", 0, time.Microsecond)
			clock.Advance(time.Microsecond)
			want("after the end", 7, 0)
			block(core.MaxWindow)
			want("blocked for as long as may be", 0, core.MaxWindow)
			if err := storetest.Do(t.Context(), b, core.OpCharge, batch); err != nil {
				t.Fatal(err)
			}
			block(0)
			want("charged while it was blocked", 4, 0)
			block(time.Minute)
			if err := storetest.Do(t.Context(), b, core.OpReset, batch); err != nil {
				t.Fatal(err)
			}
			want("reset", 10, 0)
		})
	}
}

// The value of a later version is not replaced by a block.
func TestABlockKeepsTheValueOfANewerVersion(t *testing.T) {
	server := redistest.Start(t)
	b := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience))
	server.MustDo("SET", stored(t, "k"), "\x03newer")
	if err := block(t.Context(), b, one("k", 1, 1), time.Hour); err == nil {
		t.Error("no error")
	}
	if got := server.MustDo("GET", stored(t, "k")); got != "\x03newer" {
		t.Errorf("the value became %q", got)
	}
}

// A reset of all returns the error of a server that keeps a key.
func TestAResetOfAllThatFails(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	client.AddHook(refusing{stored(t, "k"), "reset"})
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	take(t, b, "k")
	err := storetest.Do(t.Context(), b, core.OpResetAll, new(core.Batch))
	var e *redisstore.Error
	if !errors.As(err, &e) || !errors.Is(err, errRefused) {
		t.Errorf("error %v, want one that wraps the client's", err)
	}
	if got := charged(t, b, "k"); got != 1 {
		t.Errorf("%d charged", got)
	}
}

// A block takes the place of the denial of a value that cannot be read.
func TestABlockReplacesTheDenialOfAValueThatCannotBeRead(t *testing.T) {
	server := redistest.Start(t)
	for _, length := range []time.Duration{0, time.Minute} {
		f := newFormatted(t, server, hour)
		f.set([]byte("abc"))
		if err := block(t.Context(), f.bound, one("k", 1, 1), length); err != nil {
			t.Fatal(err)
		}
		if b := f.take(); b.Items[0].Results[0].RetryAfter != length {
			t.Errorf("blocked for %v: %+v", length, b.Items[0].Results)
		}
	}
}

// A reset of all forgets the keys of all rules, and those of no other limiter, on every
// server.
func TestAResetOfAllForgetsTheLimitersKeys(t *testing.T) {
	t.Parallel()
	_, several := newCluster(t)
	for name, client := range map[string]redisstore.Client{"Single": newClient(t, redistest.Start(t).Addr), "Cluster": several} {
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
			if err := storetest.Do(t.Context(), b, core.OpResetAll, new(core.Batch)); err != nil {
				t.Fatal(err)
			}
			admits(b, true)
			admits(other, false)
		})
	}
}
