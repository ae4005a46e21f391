package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
)

// SharedFactory returns stores that share one set of counters and nothing else, as instances of an
// application do. There is one store for each clock, which takes the time from it. The counters are
// empty. SharedFactory registers cleanup with t.
type SharedFactory func(t testing.TB, clocks ...func() time.Time) []core.Store

// Shared tests several instances on one set of counters: programs with different limits do not
// change each other's counts, and instances whose clocks differ admit no more than is guaranteed.
func Shared(t *testing.T, newStores SharedFactory) {
	t.Run("Programs", func(t *testing.T) { programs(t, newStores) })
	t.Run("TwoVersions", func(t *testing.T) { twoVersions(t, newStores) })
	t.Run("Skew", func(t *testing.T) { skew(t, newStores) })
	t.Run("Waits", func(t *testing.T) { skewedWaits(t, newStores) })
}

// twoVersions takes in turns with two versions of one program, one of which has other limits: each
// admits exactly its own quota.
func twoVersions(t *testing.T, newStores SharedFactory) {
	minute, hour := core.PerMinute(5), core.PerHour(8)
	for name, limits := range map[string][2][]core.Limit{
		"none in common":   {{minute}, {{Quota: 10, Window: 2 * time.Minute}}},
		"one in common":    {{minute, hour}, {{Quota: 10, Window: 2 * time.Minute}, hour}},
		"one limit more":   {{hour}, {hour, minute}},
		"other algorithms": {{{Quota: 5, Window: time.Minute, Algorithm: core.TokenBucket}}, {{Quota: 5, Window: time.Minute, Algorithm: core.SlidingLog}}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := NewClock(start())
			limiter := uniqueName()
			var versions []*counter
			for i, store := range newStores(t, clock.Now, clock.Now) {
				rules := []core.StoreRule{{Name: "r", Limits: limits[i]}}
				bound, err := store.Open(limiter, rules)
				if err != nil {
					t.Fatal(err)
				}
				versions = append(versions, &counter{t, bound, rules, store.Guarantees().Ops})
			}
			var admitted [2]int64
			for range 200 {
				for i, v := range versions {
					if v.take("k", 1).Allowed {
						admitted[i]++
					}
				}
			}
			own := [2]int64{5, 10}
			switch name {
			case "other algorithms":
				own[1] = 5
			case "one in common": // the two share 8, in turns
				own = [2]int64{4, 4}
			case "one limit more":
				own = [2]int64{4, 4}
			}
			if admitted != own {
				t.Errorf("the versions admitted %v, want %v", admitted, own)
			}
		})
	}
}

// programs compares random sequences of takes, refunds and resets by three programs with different
// limits of the same key with the model, which counts for each limit by itself.
func programs(t *testing.T, newStores SharedFactory) {
	clock := NewClock(start())
	stores := newStores(t, clock.Now, clock.Now, clock.Now)
	rapid.Check(t, func(r *rapid.T) {
		clock.Set(start())
		all := drawLimits(r, 48*time.Hour)
		for _, l := range drawLimits(r, 12*time.Hour) {
			if !slices.ContainsFunc(all, func(o core.Limit) bool { return identity(o) == identity(l) }) {
				all = append(all, l)
			}
		}
		limiter, counts := uniqueName(), map[string]*modelLimit{}
		var players []*play
		for _, store := range stores {
			var own []core.Limit
			for i, l := range all {
				if rapid.Bool().Draw(r, "has") || i == len(all)-1 && own == nil {
					own = append(own, l)
				}
			}
			rules := []core.StoreRule{{Name: "r", Limits: own}}
			bound, err := store.Open(limiter, rules)
			if err != nil {
				r.Fatalf("Open: %v", err)
			}
			player := &play{r: r, clock: clock, rules: rules, states: map[string][]*modelLimit{}, counter: &counter{t, bound, rules, store.Guarantees().Ops}}
			for _, key := range []string{"", "a", "b"} {
				for _, l := range own {
					name := identity(l) + key
					if counts[name] == nil {
						counts[name] = &modelLimit{Limit: l}
					}
					player.states["0 "+key] = append(player.states["0 "+key], counts[name])
				}
			}
			players = append(players, player)
		}
		some := func(r *rapid.T) *play {
			p := rapid.SampledFrom(players).Draw(r, "program")
			p.r = r
			return p
		}
		r.Repeat(map[string]func(*rapid.T){
			"take":    func(r *rapid.T) { some(r).take(false) },
			"again":   func(r *rapid.T) { some(r).take(false) },
			"peek":    func(r *rapid.T) { some(r).take(true) },
			"refund":  func(r *rapid.T) { some(r).refund() },
			"advance": func(r *rapid.T) { some(r).advance() },
		})
		for _, key := range []string{"", "a", "b"} {
			item := players[0].item(0, key, 0)
			if err := Do(context.Background(), players[0].bound, core.OpReset, &core.Batch{Items: []core.Item{item}}); err != nil {
				r.Fatalf("Reset: %v", err)
			}
		}
		for i, p := range players {
			if b := p.peek("a", 1); slices.ContainsFunc(b.Items[0].Results, func(r core.Result) bool { return r.ResetAfter > 0 }) {
				r.Fatalf("program %d: %+v after a reset by another one", i, b.Items[0].Results)
			}
		}
	})
}

// identity returns the text that tells the counters of one rule apart.
func identity(l core.Limit) string {
	return fmt.Sprint(l.Algorithm, l.Window, l.Precision, l.Aligned, l.Lockout == core.Lockout{}, " ")
}
