package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// slotsOf is a limiter of one limit of slots, and what a test holds of them. If extra is not
// "", its takes go the long way.
type slotsOf struct {
	*core.Limiter

	extra    string
	releases []func()
	last     core.Decision
	seen     []string // by its observer
	configs  [2]core.Config
}

func (s *slotsOf) hit(key string) core.Hit {
	return core.Hit{Rule: "r", Key: key, Extra: s.extra}
}

// Acquire on a key that the Memory knows takes a shorter way. Whatever comes in between,
// it says and does what the long way does.
func TestTheShortWayToASlotAgreesWithTheLongWay(t *testing.T) {
	for _, observed := range []bool{false, true} {
		t.Run(fmt.Sprint("observed=", observed), func(t *testing.T) { compareWays(t, observed) })
	}
}

func compareWays(t *testing.T, observed bool) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random, ctx := rand.New(rand.NewPCG(seed, 1)), context.Background() //nolint:gosec // a test's
	now := time.Unix(1_800_000_000, 0)
	var both [2]*slotsOf
	for i, extra := range []string{"", "x"} {
		m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 1000, Clock: func() time.Time { return now }}))
		s := &slotsOf{extra: extra}
		observer := observeFunc(func(string, []core.Rule) core.ObserverFuncs {
			return core.ObserverFuncs{Decided: func(_ context.Context, o core.Observation) {
				s.seen = append(s.seen, fmt.Sprint(o.Allowed, o.Reason, o.Rule, o.Cost, o.Remaining, o.RetryAfter))
			}, Held: func(_ context.Context, rule int, slots int64, _ time.Duration) {
				s.seen = append(s.seen, fmt.Sprint(rule, slots))
			}}
		})
		slots, rate := core.InFlight(3), core.Limit{Name: "rate", Quota: 1_000_000, Window: time.Hour}
		for i, limits := range [][]core.Limit{{slots}, {rate, slots}} {
			s.configs[i] = core.Config{Headers: core.HeadersXEpoch, Rules: []core.Rule{{Name: "r", Limits: limits}}}
			if observed {
				s.configs[i].Observer = observer
			}
		}
		s.configs[0].Store = m
		s.Limiter = core.Must(core.New(s.configs[0]))
		both[i] = s
	}
	keys := []string{"", "a", "a\x00", "b"}
	for step := range 5000 {
		key, what, which := keys[random.IntN(len(keys))], random.IntN(12), random.IntN(100)
		now = now.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
		if random.IntN(50) == 0 {
			now = now.Add(200 * 24 * time.Hour) // a lease that is never released ends after 366 days
		}
		var said [2]core.Decision
		for i, s := range both {
			var err error
			switch {
			case what < 5:
				var release func()
				if hits := []core.Hit{s.hit(key), s.hit("b")}; what == 0 {
					said[i], release, err = s.Acquire(ctx, hits...)
				} else {
					said[i], release, err = s.Acquire(ctx, hits[0])
				}
				s.releases, s.last = append(s.releases, release), said[i]
			case what < 9 && len(s.releases) > 0:
				n := which % len(s.releases)
				s.releases[n]()
				if which%2 == 0 { // else it is called again some time
					s.releases = append(s.releases[:n], s.releases[n+1:]...)
				}
			case what == 9:
				release, _ := s.last.Hold() // after a Reset, only the short way knows that the lease has ended
				s.releases = append(s.releases, release)
				s.Settle(&request{}, s.last, core.Outcome{})
			case what == 10 && which < 20:
				err = s.Block(ctx, time.Second, s.hit(key))
			case what == 11 && which < 20:
				err = s.Reset(ctx, s.hit(key))
			case what == 11 && which < 22:
				err = s.Reconfigure(s.configs[which%2])
			}
			if err != nil {
				t.Fatal(err)
			}
			if said[i].Key() != both[0].last.Key() && what < 5 {
				t.Fatalf("step %d: the key is %q", step, said[i].Key())
			}
		}
		same := func(when string, a, b core.Decision) {
			t.Helper()
			if a.LimitStatus != b.LimitStatus || a.Allowed != b.Allowed || a.Reason != b.Reason || a.Cost != b.Cost || a.Limiter != b.Limiter {
				t.Fatalf("step %d, %s: the short way %+v, the long way %+v", step, when, a, b)
			}
		}
		same("the decision", said[0], said[1])
		if a, b := said[0].AppendHeaders(nil), said[1].AppendHeaders(nil); !slices.Equal(a, b) {
			t.Fatalf("step %d: the headers are %v, of the long way %v", step, a, b)
		}
		if a, b := both[0].seen, both[1].seen; !slices.Equal(a, b) {
			t.Fatalf("step %d: the observer has seen %v of the short way, %v of the long way", step, a, b)
		}
		for _, key := range keys {
			var seen [2]core.Decision
			for i, s := range both {
				var err error
				if seen[i], err = s.Peek(ctx, 1, s.hit(key)); err != nil {
					t.Fatal(err)
				}
			}
			same("a look at "+key, seen[0], seen[1])
		}
		if a, b := both[0].Stats(), both[1].Stats(); a != b {
			t.Fatalf("step %d: the short way has counted %+v, the long way %+v", step, a, b)
		}
	}
}

func BenchmarkAcquire(b *testing.B) {
	for _, row := range []struct {
		name string
		held int
	}{{"alone", 0}, {"beside 9", 9}, {"beside 900", 900}} {
		b.Run(row.name, func(b *testing.B) {
			l, ctx := benchLimiter(b, core.Rule{Name: "k", Limits: []core.Limit{core.InFlight(1000)}}), context.Background()
			for range row.held {
				_, _, _ = l.Acquire(ctx, core.Hit{Rule: "k", Key: "key"})
			}
			b.ReportAllocs()
			for b.Loop() {
				d, release, err := l.Acquire(ctx, core.Hit{Rule: "k", Key: "key"})
				if !d.Allowed || err != nil {
					b.Fatal(d, err)
				}
				release()
			}
		})
	}
	b.Run("1,000 keys", func(b *testing.B) {
		l, ctx, keys := benchLimiter(b, core.Rule{Name: "k", Limits: []core.Limit{core.InFlight(10)}}), context.Background(), benchKeys(1000)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			d, release, err := l.Acquire(ctx, core.Hit{Rule: "k", Key: keys[i]})
			if !d.Allowed || err != nil {
				b.Fatal(d, err)
			}
			release()
			if i++; i == len(keys) {
				i = 0
			}
		}
	})
}
