package redisstore_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// ran returns how often the server has run the commands that the script gives.
func ran(server *redistest.Server) map[string]int {
	n := map[string]int{}
	for line := range strings.Lines(server.MustDo("INFO", "commandstats")) {
		var calls int
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if _, err := fmt.Sscanf(rest, "%d,", &calls); err == nil {
			switch name {
			case "getrange", "pttl", "set", "setrange", "del", "pexpire", "time":
				n[name] = calls
			}
		}
	}
	return n
}

// A take that is allowed reads each key once, and writes it once.
func TestATakeReadsEachKeyOnce(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	first := map[string]int{"getrange": 1, "pttl": 1, "set": 1}
	again := map[string]int{"getrange": 1, "pttl": 1, "setrange": 1} // its lifetime stays
	other := map[string]int{"getrange": 1, "pttl": 1, "set": 1}
	type step struct {
		after time.Duration
		cost  int64
		want  map[string]int
	}
	fixed := core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow}
	two, three := core.PerMinute(5), core.Limit{Quota: 5, Window: time.Minute, Algorithm: core.FixedWindow}
	four := core.Limit{Quota: 5, Window: 2 * time.Minute, Aligned: true}
	used := []step{{0, 1, first}, {0, 1, again}, {time.Second, 1, again}, {0, 2, again}} // up to the quota
	for name, c := range map[string]struct {
		limits []core.Limit
		steps  []step
	}{
		"a fixed window":   {[]core.Limit{fixed}, used},
		"a sliding window": {[]core.Limit{hour}, used},
		"two windows":      {[]core.Limit{fixed, two}, used},
		"three windows":    {[]core.Limit{fixed, two, three}, used},
		"four windows":     {[]core.Limit{fixed, two, three, four}, used},
		"the largest quota": {[]core.Limit{{Quota: core.MaxQuota, Window: time.Second}}, []step{
			{0, core.MaxQuota, first}, {2*time.Second - time.Microsecond, 1, again},
		}},
		"hits of the window before": {[]core.Limit{hour}, []step{{0, 5, first}, {90 * time.Minute, 1, other}, {0, 1, again}}},
		"hits that count no more":   {[]core.Limit{hour}, []step{{0, 5, first}, {2 * time.Hour, 1, other}}},
		"a clock that goes back":    {[]core.Limit{hour}, []step{{0, 1, first}, {-time.Hour + time.Microsecond, 1, other}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFormatted(t, server, c.limits...)
			for i, s := range c.steps {
				f.clock.Advance(s.after)
				if s.after > time.Minute { // the server's clock stands still
					server.MustDo("PEXPIRE", stored(t, "k"), "100000000")
				}
				server.MustDo("CONFIG", "RESETSTAT")
				batch := one("k", s.cost, len(c.limits))
				if err := storetest.Do(t.Context(), f.bound, core.OpTake, batch); err != nil || !batch.Allowed {
					t.Fatalf("take %d: allowed %v, error %v", i, batch.Allowed, err)
				}
				if got := ran(server); !maps.Equal(got, s.want) {
					t.Errorf("take %d: the script ran %v, want %v", i, got, s.want)
				}
			}
		})
	}
	t.Run("two keys", func(t *testing.T) {
		b := bind(t, client, hourly, redisstore.Timeout(patience))
		for _, want := range []map[string]int{{"getrange": 2, "pttl": 2, "set": 2, "time": 1}, {"getrange": 2, "pttl": 2, "setrange": 2, "time": 1}} {
			batch := one("a", 1, 1)
			batch.Items = append(batch.Items, one("b", 2, 1).Items...)
			server.MustDo("CONFIG", "RESETSTAT")
			if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
				t.Fatalf("allowed %v, error %v", batch.Allowed, err)
			}
			if got := ran(server); !maps.Equal(got, want) {
				t.Errorf("the script ran %v, want %v", got, want)
			}
		}
	})
}

// The decisions of one command are made one after the other, each for its own keys.
func TestATakeAmongOthers(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	ctx := t.Context()
	script := redis.NewScript(redisstore.ScriptText())
	const now = 1_764_000_123_456_789
	run := func(keys []string, costs ...int64) string {
		t.Helper()
		reply, err := script.Run(ctx, client, keys, redisstore.Ask(false, now, []core.Limit{hour}, false, costs...)...).Text()
		if err != nil {
			t.Fatal(err)
		}
		return reply[8:]
	}
	var want string
	costs := []int64{3, 11, 2, 1} // the second is denied
	for i, cost := range costs {
		want += run([]string{fmt.Sprint("alone", i)}, cost)
	}
	if got := run([]string{"0", "1", "2", "3"}, costs...); got != want {
		t.Errorf("together %x, alone %x", got, want)
	}
	for i, size := range []int64{33, 0, 33, 33} {
		if got := client.StrLen(ctx, fmt.Sprint(i)).Val(); got != size {
			t.Errorf("key %d has %d bytes, want %d", i, got, size)
		}
	}
}
