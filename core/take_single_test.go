package core_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// covered is a store that a limiter does not know for a Memory: its takes go the
// long way.
type covered struct{ core.Store }

func (c covered) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := c.Store.Bind(limiter, rules)
	return coveredBound{b}, err
}

type coveredBound struct{ core.Bound }

func (c coveredBound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	b, err := c.Bound.Rebind(rules)
	return coveredBound{b}, err
}

// A single key is decided in a shorter way where it can be: with any limit, and
// whatever comes in between, it says and does what the long way does.
func TestTheShortWayAgreesWithTheLongWay(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's
	limits := []core.Limit{
		core.PerMinute(5), {Quota: 5, Window: time.Minute, Algorithm: core.FixedWindow}, {Quota: 5, Window: time.Minute, Aligned: true},
		{Quota: 5, Window: time.Minute, Algorithm: core.TokenBucket, Burst: 7}, {Quota: 5, Window: time.Minute, Algorithm: core.BucketedWindow, Precision: 10 * time.Second},
		{Quota: 5, Window: time.Minute, Algorithm: core.SlidingLog}, {Quota: 0, Window: time.Minute},
		{Quota: 3, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Factor: 2, Max: time.Hour}},
		{Quota: 5, Window: 24 * time.Hour, Algorithm: core.FixedWindow, Zone: time.UTC},
	}
	keys := []string{"", "a", "a\x00", "b", strings.Repeat("k", 62), strings.Repeat("k", 63), strings.Repeat("k", 64), strings.Repeat("k", 200)}
	for _, limit := range limits {
		now := time.Unix(1_800_000_000, 0)
		config := core.Config{Name: "a", Rules: []core.Rule{{Name: "other", Limits: []core.Limit{{Quota: 1, Window: 24 * time.Hour}}}, {Name: "r", Limits: []core.Limit{limit}}}}
		var limiters [2]*core.Limiter
		var memories [2]*core.Memory
		for i := range limiters {
			memories[i] = core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 1000, Clock: func() time.Time { return now }})) // one shard: what a Reconfigure drops, it drops by the shard
			config.Store = memories[i]
			if i == 1 {
				config.Store = covered{memories[i]}
			}
			limiters[i] = core.Must(core.New(config))
		}
		config.Store = nil
		both := func(what string, do func(*core.Limiter) (core.Decision, error)) {
			t.Helper()
			var d [2]core.Decision
			var err [2]error
			for i, l := range limiters {
				d[i], err[i] = do(l)
			}
			a, b := d[0], d[1]
			if a.LimitStatus != b.LimitStatus || a.Allowed != b.Allowed || a.Reason != b.Reason || a.Cost != b.Cost || a.Limiter != b.Limiter || a.DryRun != b.DryRun || (err[0] == nil) != (err[1] == nil) {
				t.Fatalf("%v: %s: the short way %+v (%v), the long way %+v (%v)", limit, what, a, err[0], b, err[1])
			}
		}
		for range 3000 {
			hit, cost := core.Hit{Rule: "r", Key: keys[random.IntN(len(keys))]}, int64(random.IntN(4))
			switch random.IntN(12) {
			case 0:
				now = now.Add(time.Duration(random.IntN(90)) * time.Second) // never back: what has expired is swept by places, which are not the same
			case 1:
				both("peek", func(l *core.Limiter) (core.Decision, error) { return l.Peek(context.Background(), cost, hit) })
			case 2:
				both("take and refund", func(l *core.Limiter) (core.Decision, error) {
					d, err := l.Take(context.Background(), cost, hit)
					if err == nil {
						err = l.Adjust(context.Background(), d, 0)
					}
					return d, err
				})
			case 3:
				both("peek and refund", func(l *core.Limiter) (core.Decision, error) {
					d, err := l.Peek(context.Background(), cost, hit)
					if err == nil {
						err = l.Adjust(context.Background(), d, 0)
					}
					return d, err
				})
			case 4:
				config.DryRun = random.IntN(2) == 0
				config.Rules[1].Limits[0].Quota = max(limit.Quota, int64(random.IntN(3)))
				if limit == core.PerMinute(5) && random.IntN(3) == 0 { // states of another kind, as long
					config.Rules[1].Limits[0].Algorithm = core.Algorithm(random.IntN(2)) // sliding or fixed
				}
				for _, l := range limiters {
					if err := l.Reconfigure(config); err != nil {
						t.Fatal(err)
					}
				}
			case 5:
				both("take of a rule that is not there", func(l *core.Limiter) (core.Decision, error) {
					return l.Take(context.Background(), cost, core.Hit{Rule: "no", Key: "k"})
				})
			case 6:
				both("reset", func(l *core.Limiter) (core.Decision, error) {
					return core.Decision{}, l.Reset(context.Background(), hit)
				})
			default:
				both("take", func(l *core.Limiter) (core.Decision, error) { return l.Take(context.Background(), cost, hit) })
			}
		}
		if a, b := limiters[0].Stats(), limiters[1].Stats(); a != b || a.Allowed == 0 && limit.Quota > 0 {
			t.Errorf("%v: stats %+v and %+v", limit, a, b)
		}
		for _, m := range memories {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
		both("take of a closed store", func(l *core.Limiter) (core.Decision, error) {
			return l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: "a"})
		})
	}
}
