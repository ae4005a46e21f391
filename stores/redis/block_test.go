package redisstore_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
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

// No waiting helps a cost above the quota, of a blocked key either.
func TestABlockLeavesNeverAlone(t *testing.T) {
	b := bind(t, newClient(t, redistest.Start(t).Addr), daily)
	if err := block(t.Context(), b, one("k", 0, 1), time.Minute); err != nil {
		t.Fatal(err)
	}
	batch := one("k", 1_000_000_000, 1)
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
		t.Fatal(err)
	}
	if r := batch.Items[0].Results[0]; batch.Allowed || r.RetryAfter != core.Never {
		t.Errorf("allowed %t, wait %v, want never", batch.Allowed, r.RetryAfter)
	}
}

func (f *formatted) block(d time.Duration) {
	f.t.Helper()
	if err := block(f.t.Context(), f.bound, one("k", 0, f.limits), d); err != nil {
		f.t.Fatal(err)
	}
}

// The shortest block denies a key, also one that nobody has used.
func TestABlockLastsAMicrosecond(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), hour)
	f.block(time.Microsecond)
	if b := f.take(); b.Allowed || b.Items[0].Results[0].RetryAfter != time.Microsecond {
		t.Errorf("allowed %t, %+v", b.Allowed, b.Items[0].Results)
	}
	f.clock.Advance(time.Microsecond)
	if b := f.take(); !b.Allowed {
		t.Errorf("after it: %+v", b.Items[0].Results)
	}
}

// A take of no hits writes no mark in the place of a value that cannot be read.
func TestATakeOfNothingKeepsWhatItCannotRead(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), hour, core.PerMinute(3))
	f.set([]byte("abc"))
	if err := storetest.Do(t.Context(), f.bound, core.OpTake, one("k", 0, f.limits)); err != nil {
		t.Fatal(err)
	}
	if got := string(f.value()); got != "abc" {
		t.Errorf("the value became %q", got)
	}
}

// The value of a later version keeps the lifetime that it has, also if it has none.
func TestAValueOfALaterVersionKeepsItsLifetime(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), hour, core.PerMinute(3))
	f.set([]byte("\x03of a newer version"))
	if b := f.take(); b.Allowed {
		t.Errorf("%+v", b.Items[0].Results)
	}
	if got := f.server.MustDo("PTTL", stored(t, "k")); got != ":-1" {
		t.Errorf("the lifetime is %s, want none", got)
	}
}

// anyQuotas returns quotas for one batch, nil for the limits' own.
func anyQuotas(r *rand.Rand, limits []core.Limit) (quotas []int64) {
	if r.IntN(2) == 0 {
		return nil
	}
	for _, l := range limits {
		most := int64(core.MaxQuota)
		if l.Algorithm == core.SlidingLog {
			most = core.MaxLogQuota
		}
		q := l.Quota
		switch r.IntN(8) {
		case 0:
			q = 0
		case 1:
			q = core.Unlimited
		case 2:
			q = 1 + r.Int64N(most)
		case 3, 4:
			q = min(most, 1+r.Int64N(2*l.Quota+1))
		case 5:
			q = min(most, max(1, l.Quota/2+r.Int64N(3)))
		}
		quotas = append(quotas, q)
	}
	return quotas
}

// smallQuotas returns quotas for one batch of a smallLimit, nil for the limits' own.
func smallQuotas(r *rand.Rand, limits []core.Limit) (quotas []int64) {
	if r.IntN(3) > 0 {
		return nil
	}
	for _, l := range limits {
		quotas = append(quotas, [...]int64{l.Quota, core.Unlimited, r.Int64N(9), max(1, l.Quota-1), l.Quota / 2}[r.IntN(5)])
	}
	return quotas
}

// A take without a limit is counted, by every algorithm, and tells what the limit's
// own quota leaves.
func TestATakeWithoutALimitIsCounted(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	for _, l := range all(20) {
		t.Run(l.Name, func(t *testing.T) {
			b := bind(t, client, []core.StoreRule{{Name: "r", Limits: []core.Limit{l}}}, redisstore.Timeout(patience))
			for _, left := range []int64{5, 0, 0} {
				batch := one("k", 15, 1)
				batch.Items[0].Quotas = []int64{core.Unlimited}
				if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
					t.Fatalf("allowed %v, error %v", batch.Allowed, err)
				}
				if r := batch.Items[0].Results[0]; !r.Allowed || r.Remaining != left || r.RetryAfter != 0 {
					t.Errorf("%+v, want %d left", r, left)
				}
			}
			if take(t, b, "k").Allowed {
				t.Error("a take with the limit's own quota is admitted after that")
			}
		})
	}
}

// A charge may cost more than any count holds: every algorithm counts what it can.
func TestAChargeOfAnyCost(t *testing.T) {
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	memory := core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))
	client := newClient(t, redistest.Start(t).Addr)
	for _, l := range all(20) {
		t.Run(l.Name, func(t *testing.T) {
			rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{l}}}
			bounds := []core.Counters{
				core.Must(memory.Open(bindName(t), rules)),
				bind(t, client, rules, redisstore.Timeout(patience), redisstore.Clock(clock.Now)),
			}
			for _, cost := range []int64{3, core.MaxQuota, core.MaxQuota + 1, 1 << 53, math.MaxInt64} {
				for _, quota := range []int64{l.Quota, 7, core.Unlimited} {
					var said [2]*core.Batch
					for i, b := range bounds {
						said[i] = one("k", cost, 1)
						said[i].Items[0].Quotas = []int64{quota}
						if err := storetest.Do(t.Context(), b, core.OpCharge, said[i]); err != nil {
							t.Fatal(err)
						}
					}
					if !reflect.DeepEqual(said[0], said[1]) {
						t.Errorf("cost %d, quota %d: in the process %+v, in Redis %+v", cost, quota, said[0], said[1])
					}
				}
			}
		})
	}
	_ = memory.Close()
}

// debt returns until when the first limit of the key k is owed something, since a time,
// and the part of a microsecond above that.
func (f *formatted) debt(start time.Time) (until time.Duration, part int64) {
	f.t.Helper()
	v := string(f.value())
	const state = 18 // behind the version, the record's head and the limit's identity
	if len(v) < state+15 {
		f.t.Fatalf("the value %x has no state of a token bucket", v)
	}
	return time.UnixMicro(number(v[state:], 7)).Sub(start), number(v[state+7:], 4)
}

// A debt of a microsecond is stored.
func TestStoredDebts(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 1000, Window: time.Millisecond, Algorithm: core.TokenBucket})
	start := f.clock.Now()
	f.take()
	if until, part := f.debt(start); until != time.Microsecond || part != 0 {
		t.Errorf("owed until %v and %d parts", until, part)
	}
}

// A refund takes off what is still owed of its charge, and no part of a microsecond more.
func TestARefundOfADebt(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 3, Window: time.Second, Algorithm: core.TokenBucket})
	start := f.clock.Now()
	first := f.take() // 333,333 and a third of a microsecond
	f.take()
	f.clock.Advance(time.Microsecond)
	if err := storetest.Do(t.Context(), f.bound, core.OpRefund, first); err != nil {
		t.Fatal(err)
	}
	if until, part := f.debt(start); until != 333_333*time.Microsecond || part != 2 {
		t.Errorf("owed until %v and %d parts, want 333.333ms and 2", until, part)
	}
}

// A grant at the beginning of a sliding window takes off hits of the one before, which
// count in full.
func TestAGrantAtTheBeginningOfAWindow(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 10_000, Window: time.Millisecond})
	batch := one("k", 5000, 1)
	if err := storetest.Do(t.Context(), f.bound, core.OpTake, batch); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(time.Millisecond)
	batch = one("k", 2000, 1)
	if err := storetest.Do(t.Context(), f.bound, core.OpGrant, batch); err != nil {
		t.Fatal(err)
	}
	if got := batch.Items[0].Results[0].Remaining; got != 7000 {
		t.Errorf("%d remain of 10,000, want 7,000", got)
	}
}
