package redisstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// The short way through the script knows its own states only, and what it can
// reckon exactly: it agrees with the counters of the process at both ends.
func TestTheShortWayAgreesWithMemory(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return now }
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	memory := core.Must(core.NewMemory(core.MemoryConfig{Clock: clock}))
	defer memory.Close() //nolint:errcheck // the test is over
	config := func(l core.Limit) core.Config {
		return core.Config{Name: "a", Rules: []core.Rule{{Name: "r", Limits: []core.Limit{l}}}}
	}
	sliding := core.Limit{Quota: core.MaxQuota, Window: core.MaxWindow}
	fixed := core.Limit{Quota: core.MaxQuota, Window: core.MaxWindow, Algorithm: core.FixedWindow}
	var limiters []*core.Limiter
	for _, store := range []core.Store{memory, redisstore.New(client, redisstore.Clock(clock), redisstore.Timeout(5*time.Second), redisstore.WithoutDenialCache())} {
		c := config(sliding)
		c.Store = store
		limiters = append(limiters, core.Must(core.New(c)))
	}
	take := func(cost int64) {
		t.Helper()
		var said []core.Decision
		for _, l := range limiters {
			d, err := l.Take(t.Context(), cost, core.Hit{Rule: "r", Key: "k"})
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, d)
		}
		if a, b := slices.Collect(said[0].Limits()), slices.Collect(said[1].Limits()); !slices.Equal(a, b) {
			t.Errorf("at %v: in the process %+v, in Redis %+v", now, a, b)
		}
	}
	take(core.MaxQuota - 3)
	for _, d := range []time.Duration{core.MaxWindow + 12_345*time.Microsecond, core.MaxWindow / 7, core.MaxWindow / 3} {
		now = now.Add(d)
		for _, cost := range []int64{1, 77, 1_000_000} {
			take(cost) // weighed in more than 53 bits
		}
	}
	for _, l := range limiters { // its states are as long as those of another kind
		if err := l.Reconfigure(config(fixed)); err != nil {
			t.Fatal(err)
		}
	}
	take(5)
	take(6)
}

// A stored time less than one window ahead is that of a faster clock, and is
// believed. From one window ahead on, the clock has been set back. The script
// draws the line where the counters of the process do, by the short way and by
// the long one.
func TestTimesLessThanOneWindowAheadAreBelieved(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	const window = time.Hour
	limits := all(10)
	limits[4].Window = window // of the token bucket
	limits = append(limits, core.Limit{Name: "full", Quota: 2, Window: window, Algorithm: core.TokenBucket}, core.Limit{
		Name: "lockout", Quota: 4, Window: window, Algorithm: core.FixedWindow,
		Lockout: core.Lockout{First: 10 * time.Minute, Factor: 2, Max: time.Hour, Decay: time.Hour},
	})
	for _, limit := range limits {
		for _, more := range [][]core.Limit{nil, {core.Limit{Quota: 100, Window: 24 * time.Hour}}} {
			for _, back := range []time.Duration{window - time.Microsecond, window, window + time.Microsecond, window + time.Minute - time.Microsecond, window + time.Minute} {
				name := fmt.Sprint(limit.Name, len(more), back.Microseconds())
				clock := storetest.NewClock(time.UnixMicro(1_764_000_120_000_000))
				var said []string
				rules := []core.StoreRule{{Name: "r", Limits: append([]core.Limit{limit}, more...)}}
				for _, store := range []core.Store{
					core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now})),
					redisstore.New(client, redisstore.Clock(clock.Now), redisstore.Timeout(patience), redisstore.WithoutDenialCache()),
				} {
					b := core.Must(store.Open(name, rules))
					clock.Set(time.UnixMicro(1_764_000_120_000_000))
					text := ""
					for range 3 {
						batch := one("k", 2, len(rules[0].Limits))
						if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
							t.Fatal(err)
						}
						text += fmt.Sprint(batch.Allowed, batch.Items[0].At, batch.Items[0].Results)
						clock.Advance(-back)
					}
					said = append(said, text)
				}
				if said[0] != said[1] {
					t.Errorf("%s: in the process %s, in Redis %s", name, said[0], said[1])
				}
			}
		}
	}
}
