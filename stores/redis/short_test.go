package redisstore_test

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// lifetime returns the lifetime of a stored value.
func lifetime(server *redistest.Server, name string) time.Duration {
	n, _ := strconv.ParseInt(strings.TrimPrefix(server.MustDo("PTTL", name), ":"), 10, 64)
	return time.Duration(n) * time.Millisecond
}

// The script has a short way for one key with sliding or fixed windows. It
// reads, decides and writes as the long way does, which a second key in the same
// take leads to, whichever bit of the stored value is changed.
func TestTheShortWayDoesAsTheLongWay(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	const window = 300 * 24 * time.Hour
	for _, l := range []core.Limit{
		{Quota: 10, Window: window},
		{Quota: 10, Window: window, Algorithm: core.FixedWindow},
		{Quota: 10, Window: window, Aligned: true},
	} {
		for _, deny := range []bool{false, true} {
			t.Run(fmt.Sprint(l.Algorithm, l.Aligned, deny), func(t *testing.T) {
				clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
				rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{l}, DenyUnreadable: deny}}
				b := bind(t, client, rules, redisstore.Timeout(patience), redisstore.Clock(clock.Now), redisstore.Log(slog.New(slog.DiscardHandler)))
				for range 3 {
					take(t, b, "k")
				}
				clock.Advance(window)
				take(t, b, "k")
				take(t, b, "k")
				whole := server.MustDo("GET", stored(t, "k"))
				if len(whole) != 33 {
					t.Fatalf("%d bytes are stored, and the short way reads 33", len(whole))
				}
				clock.Advance(window / 4)
				for i := range 8 * len(whole) {
					value := []byte(whole)
					value[i/8] ^= 1 << (i % 8)
					server.MustDo("SET", stored(t, "short"), string(value))
					server.MustDo("SET", stored(t, "long"), string(value))
					server.MustDo("DEL", stored(t, "other"))
					short, long := one("short", 1, 1), one("long", 1, 1)
					long.Items = append(long.Items, one("other", 1, 1).Items...)
					for _, batch := range []*core.Batch{short, long} {
						if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
							t.Fatalf("bit %d: %v", i, err)
						}
					}
					was := fmt.Sprint(short.Allowed, short.Items[0].At, short.Items[0].Results)
					if is := fmt.Sprint(long.Allowed, long.Items[0].At, long.Items[0].Results); was != is {
						t.Errorf("bit %d: the short way says %v, the long one %v", i, was, is)
					}
					if was, is := server.MustDo("GET", stored(t, "short")), server.MustDo("GET", stored(t, "long")); was != is {
						t.Errorf("bit %d: the short way stores %x, the long one %x", i, was, is)
					}
					if was, is := lifetime(server, stored(t, "short")), lifetime(server, stored(t, "long")); max(was-is, is-was) > time.Minute {
						t.Errorf("bit %d: the lifetime is %v by the short way, and %v by the long one", i, was, is)
					}
				}
			})
		}
	}
}

// At and around the edges of windows both ways agree with the counters of the
// process, to the microsecond.
func TestBothWaysAgreeWithMemoryAtTheEdgesOfWindows(t *testing.T) {
	t.Parallel()
	client := newClient(t, redistest.Start(t).Addr)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	memory := core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))
	defer memory.Close() //nolint:errcheck // the test is over
	ms := time.Millisecond
	rules := []core.StoreRule{
		{Name: "short", Limits: []core.Limit{{Quota: 20, Window: ms}}},
		{Name: "long", Limits: []core.Limit{{Quota: 20, Window: ms}, {Quota: 50, Window: 5 * ms, Algorithm: core.FixedWindow}, {Quota: 50, Window: 4 * ms, Algorithm: core.BucketedWindow, Precision: ms}}},
	}
	own := core.Must(memory.Open("edges", rules))
	shared := core.Must(redisstore.New(client, redisstore.Clock(clock.Now), redisstore.Timeout(patience), redisstore.WithoutDenialCache()).Open("edges", rules))
	for before := range int64(6) {
		for micros := int64(0); micros < 1000; micros += 37 {
			for _, later := range []int64{micros, 999 - micros} {
				key := fmt.Sprint(before, " ", later)
				step := func(cost int64) {
					t.Helper()
					for rule := range rules {
						var said []string
						for _, b := range []core.Counters{own, shared} {
							batch := one(key, cost, len(rules[rule].Limits))
							batch.Items[0].Rule = rule
							if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
								t.Fatal(err)
							}
							said = append(said, fmt.Sprint(batch.Allowed, batch.Items[0].At, batch.Items[0].Results))
						}
						if said[0] != said[1] {
							t.Fatalf("%d hits before, %d µs later, %s way: in the process %s, in Redis %s", before, later, rules[rule].Name, said[0], said[1])
						}
					}
				}
				step(before)
				clock.Advance(ms + time.Duration(later)*time.Microsecond)
				step(1)
				clock.Advance(300 * time.Microsecond)
				step(2)
				clock.Advance(ms)
				step(1)
				clock.Advance(10 * ms)
			}
		}
	}
}

// The time of a decision is the server's, in microseconds.
func TestTheServersTimeDecides(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	now := func() int64 {
		at, err := client.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMicro()
	}
	before := now()
	at := take(t, b, "k").Items[0].At
	if after := now(); at < before || at > after {
		t.Errorf("decided at %d, between %d and %d", at, before, after)
	}
}

// A state lives as long as it counts, and a minute longer if the application's
// clock decides, which may be late.
func TestAStateLivesAMinuteLongerThanItCounts(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	const day, window = 24 * time.Hour, 300 * 24 * time.Hour
	limits := []core.Limit{
		{Quota: 5, Window: window},
		{Quota: 5, Window: window, Algorithm: core.FixedWindow},
		{Quota: 5, Window: window, Algorithm: core.BucketedWindow, Precision: window / 10},
		{Quota: 5, Window: window, Algorithm: core.SlidingLog},
		{Quota: 5, Window: window, Algorithm: core.TokenBucket},
		{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: day, Factor: 2, Max: 2 * day, Decay: 50 * day}},
		{Quota: 6, Window: window, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: day, Factor: 2, Max: 2 * day, Decay: 50 * day}},
	}
	for i, l := range limits {
		for _, more := range [][]core.Limit{nil, {core.PerSecond(9)}} { // the short way, if there is one, and the long one
			t.Run(fmt.Sprint(i, len(more)), func(t *testing.T) {
				b := bind(t, client, []core.StoreRule{{Name: "r", Limits: append([]core.Limit{l}, more...)}}, redisstore.Timeout(patience), redisstore.Clock(clock.Now))
				batch := one("k", 5, 1+len(more))
				if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
					t.Fatal(batch.Allowed, err)
				}
				ends := l.Window // when the state means nothing any more
				switch l.Algorithm {
				case core.SlidingWindow:
					ends = 2 * window
				case core.BucketedWindow:
					at := clock.Now().UnixMicro()
					ends += time.Duration(l.Precision.Microseconds()-at%l.Precision.Microseconds()) * time.Microsecond
				}
				if l.Lockout.First > 0 && l.Quota == 5 { // the wait, and the time after which it is forgotten
					ends = l.Lockout.First + l.Lockout.Decay
				}
				if got := lifetime(server, stored(t, "k")); got <= ends+30*time.Second || got > ends+time.Minute+time.Millisecond {
					t.Errorf("lifetime %v, want %v and a minute", got, ends)
				}
			})
		}
	}
}
