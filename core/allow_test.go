package core_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Allow answers what Take with a cost of 1 answers, and leaves the same counters
// and statistics.
func TestAllowAgreesWithTake(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's
	rules, keys := []string{"one", "two", "three"}, []string{"", "a", "a\x00", "b"}
	limit := func(quota int64) core.Limit {
		limits := []core.Limit{
			{Quota: quota, Window: time.Minute},
			{Quota: quota, Window: time.Minute, Algorithm: core.FixedWindow},
			{Quota: quota, Window: time.Minute, Algorithm: core.TokenBucket, Burst: quota + 1},
			{Quota: quota, Window: time.Minute, Algorithm: core.BucketedWindow, Precision: 10 * time.Second},
			{Quota: quota, Window: time.Minute, Algorithm: core.SlidingLog},
			{Quota: 0, Window: time.Minute},
			{Quota: quota, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Factor: 2, Max: time.Hour}},
		}
		return limits[random.IntN(len(limits))]
	}
	for range 300 {
		config := core.Config{Name: "l", DryRun: random.IntN(4) == 0, Rules: []core.Rule{
			{Name: "one", Limits: []core.Limit{limit(3)}},
			{Name: "two", Limits: []core.Limit{limit(4), {Name: "day", Quota: 6, Window: 24 * time.Hour}}},
			{Name: "three", Limits: []core.Limit{limit(2)}},
		}}
		now := time.Unix(1_800_000_000, 0)
		var limiters [2]*core.Limiter
		for i := range limiters {
			config.Store = core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 100, Clock: func() time.Time { return now }}))
			if random.IntN(3) == 0 {
				config.Store = covered{config.Store}
			}
			limiters[i] = core.Must(core.New(config))
		}
		allows, takes := limiters[0], limiters[1]
		for range 1 + random.IntN(60) {
			hits := make([]core.Hit, 1+max(0, random.IntN(5)-2))
			for i := range hits {
				hits[i] = core.Hit{Rule: rules[random.IntN(len(rules))], Key: keys[random.IntN(len(keys))]}
			}
			d, err := takes.Take(t.Context(), 1, hits...)
			if err != nil {
				t.Fatal(err)
			}
			if got := allows.Allow(t.Context(), hits...); got != d.Allowed {
				t.Fatalf("%+v: Allow(%v) is %t, Take says %v", config.Rules, hits, got, d)
			}
			now = now.Add(time.Duration([]int{0, 0, 0, 1, 20, 70}[random.IntN(6)]) * time.Second)
		}
		if a, b := allows.Stats(), takes.Stats(); a != b {
			t.Fatalf("%+v: statistics of Allow %+v, of Take %+v", config.Rules, a, b)
		}
		for _, rule := range rules {
			for _, key := range keys {
				var left [2][]core.LimitStatus
				for i, l := range limiters {
					d, err := l.Peek(t.Context(), 1, core.Hit{Rule: rule, Key: key})
					if err != nil {
						t.Fatal(err)
					}
					left[i] = slices.Collect(d.Limits())
				}
				if !slices.Equal(left[0], left[1]) {
					t.Fatalf("%+v: rule %s, key %q: Allow has left %+v, Take %+v", config.Rules, rule, key, left[0], left[1])
				}
			}
		}
	}
}

func TestAllowWithoutHitsIsTrue(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
	if !l.Allow(t.Context()) {
		t.Error("denied")
	}
}

// What keeps Allow from deciding is logged, as nobody else hears of it.
func TestAllowDeniesAndLogsIfItCannotDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s := &lines{}, newCounting()
		l := newLimiter(t, core.Config{Name: "api", Store: s, Log: log.logger(), DryRun: true, Rules: []core.Rule{
			{Name: "user", Limits: []core.Limit{core.PerMinute(100)}},
		}}, nil)
		for range 2 { // one line a second
			if l.Allow(t.Context(), core.Hit{Rule: "usr", Key: "alice"}) {
				t.Error("a rule that does not exist allows")
			}
		}
		wantLines(t, log, `level=ERROR msg="floodgate: a call failed" limiter=api operation=allow error="limiter \"api\", rule \"usr\": floodgate: unknown rule: the limiter has \"user\""`)
		s.fault = errFault
		if l.Allow(t.Context(), core.Hit{Rule: "user", Key: "alice"}) {
			t.Error("a store that fails allows")
		}
		wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=take rule=user error="dial tcp 10.1.2.3:6379: connection refused"`)
		if got := l.Stats().Failed; got != 3 {
			t.Errorf("%d failures are counted, want 3", got)
		}
	})
}

func TestAllowOfAClosedMemoryIsFalse(t *testing.T) {
	log, m := &lines{}, core.Must(core.NewMemory(core.MemoryConfig{}))
	l := newLimiter(t, core.Config{Name: "api", Store: m, Log: log.logger(), Rules: []core.Rule{
		{Name: "user", Limits: []core.Limit{core.PerMinute(100)}},
	}}, nil)
	hit := core.Hit{Rule: "user", Key: "alice"}
	l.Allow(t.Context(), hit)
	if l.Allow(t.Context(), core.Hit{Rule: "usr", Key: "alice"}) {
		t.Error("a rule that does not exist allows")
	}
	log.take()
	for _, want := range []bool{true, true, false} {
		if !want {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if got := l.Allow(t.Context(), hit); got != want {
			t.Errorf("Allow is %t, want %t", got, want)
		}
	}
	wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=take rule=user error="in-process counters: floodgate: store is closed"`)
}

// Beside an observer, Allow keeps to all that a hit says.
func TestAllowBesideAnObserver(t *testing.T) {
	w := &watcher{}
	l := newLimiter(t, core.Config{Observer: w, Log: (&lines{}).logger(), Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(2)}}}}, newClock())
	for i, row := range []struct {
		hit  core.Hit
		want bool
	}{
		{core.Hit{Rule: "r", Key: "k"}, true}, {core.Hit{Rule: "r", Key: "k"}, true}, {core.Hit{Rule: "r", Key: "k"}, false},
		{core.Hit{Rule: "r", Key: "k", Extra: "x"}, true},
		{core.Hit{Rule: "r", Key: "k", Quotas: []int64{3}}, true}, {core.Hit{Rule: "r", Key: "k", Quotas: []int64{3}}, false},
		{core.Hit{Rule: "no", Key: "k"}, false},
	} {
		if got := l.Allow(t.Context(), row.hit); got != row.want {
			t.Errorf("%d: %+v: Allow is %t, want %t", i, row.hit, got, row.want)
		}
	}
	if got := len(w.take()); got != 7 {
		t.Errorf("%d decisions were observed, want 7", got)
	}
}
