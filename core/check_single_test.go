package core_test

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A request is decided in a shorter way if the limiter has one limit and a Memory: whatever
// its key function does, the decision and the counts are those of the long way.
func TestTheShortWayOfARequestAgreesWithTheLongWay(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a test's
	bad := &core.BadRequestError{Detail: "bad"}
	key := func(dst []byte, r core.Request) ([]byte, error) {
		switch text := r.HeaderValues("Key")[0]; text {
		case "skip":
			return dst, core.SkipRule
		case "bad":
			return dst, bad
		case "fail":
			return append(dst, "x"...), errors.New("failed")
		case "body":
			return bodyKey(dst, r)
		default:
			return append(dst, text...), nil
		}
	}
	texts := []string{"", "a", "b", "skip", "bad", "fail", "body", strings.Repeat("k", 63), strings.Repeat("k", 64), strings.Repeat("k", 500)}
	for _, limit := range []core.Limit{core.PerMinute(5), {Quota: 5, Window: time.Minute, Algorithm: core.TokenBucket}, {Quota: 5, Window: time.Minute, Algorithm: core.SlidingLog}, {Quota: 0, Window: time.Minute}} {
		now := time.Unix(1_800_000_000, 0)
		config := core.Config{Name: "a", Log: slog.New(slog.DiscardHandler), Rules: []core.Rule{{Name: "r", Key: key, Limits: []core.Limit{limit}}}}
		var limiters [2]*core.Limiter
		for i := range limiters {
			store := core.Store(core.Must(core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return now }})))
			if i == 1 {
				store = covered{store}
			}
			config.Store = store
			limiters[i] = core.Must(core.New(config))
		}
		config.Store = nil
		quota := func(r core.Request, l core.Limit) (int64, error) {
			switch text := r.HeaderValues("Quota")[0]; text {
			case "bad":
				return 0, bad
			case "fail":
				return 0, errors.New("failed")
			case "body":
				_, err := bodyKey(nil, r)
				return 2, err
			case "unlimited":
				return core.Unlimited, nil
			case "negative":
				return -1, nil
			case "own":
				return l.Quota, nil
			default:
				return int64(len(text)), nil
			}
		}
		quotas := []string{"", "x", "xx", strings.Repeat("x", 9), "own", "bad", "fail", "body", "unlimited", "negative", "own", "own"}
		for step := range 3000 {
			r := &request{method: []string{"GET", "OPTIONS"}[random.IntN(2)], header: map[string][]string{"Key": {texts[random.IntN(len(texts))]}, "Quota": {quotas[random.IntN(len(quotas))]}}, body: texts[random.IntN(3)]}
			if r.method == "OPTIONS" && random.IntN(2) == 0 {
				r.header["Access-Control-Request-Method"] = []string{"GET"}
			}
			refund := random.IntN(4) == 0
			switch random.IntN(20) {
			case 0:
				now = now.Add(time.Duration(random.IntN(90)) * time.Second)
			case 1:
				config.DryRun = random.IntN(2) == 0
				if config.Rules[0].Quota = nil; random.IntN(2) == 0 {
					config.Rules[0].Quota = quota
				}
				for _, l := range limiters {
					if err := l.Reconfigure(config); err != nil {
						t.Fatal(err)
					}
				}
			}
			var d [2]core.Decision
			for i, l := range limiters {
				if d[i] = l.Check(r); refund {
					if err := l.Adjust(t.Context(), d[i], 0); err != nil {
						t.Fatal(err)
					}
				}
			}
			a, b := d[0], d[1]
			if a.LimitStatus != b.LimitStatus || a.Allowed != b.Allowed || a.Reason != b.Reason || a.Cost != b.Cost || a.Limiter != b.Limiter || a.DryRun != b.DryRun || (a.Err == nil) != (b.Err == nil) ||
				a.Key() != b.Key() || a.StoredKey() != b.StoredKey() {
				t.Fatalf("%v: step %d, %q, quota %q: the short way %+v, the long way %+v", limit, step, r.header["Key"][0], r.header["Quota"][0], a, b)
			}
		}
		if a, b := limiters[0].Stats(), limiters[1].Stats(); a != b || a.Denied == 0 || a.Skipped == 0 || a.Failed == 0 || a.BadRequests == 0 {
			t.Errorf("%v: stats %+v and %+v", limit, a, b)
		}
	}
}

// The short way does not pass by what a limiter of one rule asks about a request, or does
// after it.
func TestTheShortWayKeepsToSelectAndClears(t *testing.T) {
	selected := true
	l := newLimiter(t, core.Config{
		Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(3)}}},
		Select: func(dst []int, _ core.Request) ([]int, error) {
			if !selected {
				return dst, nil
			}
			return append(dst, 0), nil
		},
	}, newClock())
	for range 6 {
		if d := l.Check(&request{}); !d.Allowed || (d.Reason == core.ReasonNoRule) == selected {
			t.Errorf("selected %t: %v", selected, d)
		}
		selected = !selected
	}
	l = newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(3)}, Clears: func(core.Request, core.Outcome) bool { return true }}}}, newClock())
	for range 6 {
		l.Check(&request{})
		d := l.Check(&request{}) // the key is known
		if l.Settle(&request{}, d, core.Outcome{Status: 200}); left(t, l, "r", "k") != 3 {
			t.Errorf("%d left of a key that was cleared, want 3", left(t, l, "r", "k"))
		}
	}
}
