package adaptertest

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// turn is when the window of a key ends.
type turn struct {
	key string
	at  time.Time
}

// turns uses up the quota of twelve keys and returns when they have it back, in order.
func turns(t *testing.T, c *client, clock *floodgatetest.Clock) (all []turn) {
	t.Helper()
	for i := range 12 {
		key := fmt.Sprint("customer-", i)
		if r := c.get("/?customer=" + key); r.status != http.StatusOK {
			t.Fatalf("%s: status %d", key, r.status)
		}
		r := c.get("/?customer=" + key)
		if r.status != http.StatusTooManyRequests {
			t.Fatalf("%s: status %d, want 429", key, r.status)
		}
		all = append(all, turn{key, clock.Now().Add(time.Duration(retryAfter(t, r)) * time.Second)})
	}
	slices.SortFunc(all, func(a, b turn) int { return a.at.Compare(b.at) })
	return all
}

// spread tests limits whose windows turn at another instant for each key, the same in each process.
func spread(t *testing.T, a Adapter) {
	clock := floodgatetest.NewClock()
	clock.Advance(17 * time.Minute)
	serve := func(spread bool) *client {
		return direct(t, a.Serve(t, limited(floodgatetest.NewLimiter(t, clock, core.Config{Name: "api", Rules: []core.Rule{{
			Name: "r", Key: keyfuncs.Query("customer"),
			Limits: []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow, Aligned: true, Spread: spread}},
		}}}))))
	}
	instants := map[time.Time]bool{}
	for _, turn := range turns(t, serve(false), clock) {
		instants[turn.at] = true
	}
	if len(instants) != 1 {
		t.Errorf("without Spread, the windows turn at %v", instants)
	}

	c := serve(true)
	all := turns(t, c, clock)
	if other := turns(t, serve(true), clock); !slices.Equal(other, all) {
		t.Errorf("in another process, the windows turn at %v, want %v", other, all)
	}
	clear(instants)
	began := clock.Now()
	for _, turn := range all {
		if instants[turn.at] = true; turn.at.Sub(began) > time.Hour {
			t.Errorf("%s has to wait for %v", turn.key, turn.at.Sub(began))
		}
		for _, step := range []struct {
			early time.Duration
			want  int
		}{{time.Second, http.StatusTooManyRequests}, {0, http.StatusOK}} {
			clock.Set(turn.at.Add(-step.early))
			if r := c.get("/?customer=" + turn.key); r.status != step.want {
				t.Errorf("%s, %v before its window turns: status %d, want %d", turn.key, step.early, r.status, step.want)
			}
		}
	}
	if len(instants) != len(all) {
		t.Errorf("the windows of %d keys turn at %d instants", len(all), len(instants))
	}
}
