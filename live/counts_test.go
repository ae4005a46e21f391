package live_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/live"
)

// sum returns what all events that a viewer has got say of a rule.
func (v *viewer) sum(rule int) (allowed, denied, dryRun int) {
	for i, s := range v.all() {
		if i > 0 && s.Second != i {
			panic("a second is missing")
		}
		r := s.Limiters[0].Rules[rule]
		allowed += r.Allowed[len(r.Allowed)-1]
		denied += r.Denied[len(r.Denied)-1]
		dryRun += r.DryRun[len(r.DryRun)-1]
	}
	return allowed, denied, dryRun
}

// However many goroutines decide at a time, no decision is missing and none is there twice.
func TestCountsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := core.Rule{Name: "user", Limits: []core.Limit{core.PerHour(10_000)}}
		page, l := newPage(t, live.Config{}, user)
		v := follow(t, page)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 5_000 {
					if i%1000 == 0 {
						time.Sleep(300 * time.Millisecond)
					}
					allow(l, 1, fmt.Sprint("user ", g%2))
				}
			})
		}
		wg.Wait()
		time.Sleep(2 * time.Second)
		if allowed, denied, dryRun := v.sum(0); allowed != 20_000 || denied != 20_000 || dryRun != 0 {
			t.Errorf("user: %d allowed, %d denied, %d dry run, want 20000 of each of the first two", allowed, denied, dryRun)
		}
		last := v.all()[len(v.all())-1].Limiters[0]
		if len(last.Denied) != 2 || last.Denied[0].Count+last.Denied[1].Count != 20_000 {
			t.Errorf("denied most: %+v", last.Denied)
		}
	})
}

// Up to 200,000 decisions a second, each is noted for its key. Of more, a sample is, and the
// counts of keys are estimates; those of rules stay exact.
func TestMoreDecisionsThanAreNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{ShowKey: func(_, _, key string) string { return key }}))
		t.Cleanup(func() { _ = page.Close() })
		decided := page.Observe("api", []core.Rule{userRule}).Decided
		v := follow(t, page)
		for i := range 1_000_000 { // a rhythm of 64, in which a few places belong to many keys
			key := fmt.Sprint("noise ", i%20_011)
			switch n := i % 64; {
			case n >= 1 && n <= 38:
				key = "a"
			case n > 38 && n < 52:
				key = "b"
			}
			decided(context.Background(), core.Observation{Reason: core.ReasonOverLimit, Key: key, Capacity: 3})
		}
		time.Sleep(1500 * time.Millisecond)
		if _, denied, _ := v.sum(0); denied != 1_000_000 {
			t.Errorf("%d denied", denied)
		}
		keys := v.all()[1].Limiters[0].Denied
		for i, want := range []int{38_000_000 / 64, 13_000_000 / 64} {
			k := keys[i]
			t.Logf("%s: %d, and up to %d more", k.Label, k.Count, k.Over)
			if math.Abs(float64(k.Count-want)) > 0.05*float64(want) || k.Label != string(rune('a'+i)) {
				t.Errorf("place %d: %+v, want about %d", i, k, want)
			}
		}
		for range 1_000_001 {
			decided(context.Background(), core.Observation{Reason: core.ReasonWithinLimits, Allowed: true, Key: "n", Capacity: 3})
		}
		time.Sleep(time.Second)
		if n := v.all()[2].Limiters[0].Near[0].Count; n < 950_000 || n > 1_050_000 || (n-200_000)%64 != 0 {
			t.Errorf("%d are noted near their limit, want 200000 and samples of 64", n)
		}
		for range 100_000 { // another second: all are noted
			decided(context.Background(), core.Observation{Reason: core.ReasonOverLimit, Key: "a", Capacity: 3})
		}
		time.Sleep(time.Second)
		if now := v.all()[3].Limiters[0].Denied[0].Count; now != keys[0].Count+100_000 {
			t.Errorf("%d are noted of 100000", now-keys[0].Count)
		}
	})
}

// What is allowed only because of DryRun was denied to nobody.
func TestADryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{}))
		t.Cleanup(func() { _ = page.Close() })
		l := core.Must(core.New(core.Config{Name: "api", Observer: page, DryRun: true, Rules: []core.Rule{{
			Name: "user", Limits: userRule.Limits,
			Key: func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, "alice"...), nil },
		}}}))
		v := follow(t, page)
		for range 5 {
			l.Check(floodgatetest.NewRequest(http.MethodGet, "/"))
		}
		time.Sleep(1500 * time.Millisecond)
		if allowed, denied, dryRun := v.sum(0); allowed != 3 || denied != 0 || dryRun != 2 {
			t.Errorf("%d allowed, %d denied, %d dry run", allowed, denied, dryRun)
		}
		if keys := v.all()[1].Limiters[0].Denied; len(keys) > 0 {
			t.Errorf("denied most: %+v", keys)
		}
	})
}

// Of more keys than the page keeps, a count is never too large, and Over says how much it may
// be too small.
func TestMoreKeysThanAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{}))
		t.Cleanup(func() { _ = page.Close() })
		decided := page.Observe("api", []core.Rule{userRule}).Decided
		v := follow(t, page)
		for i := range 10_000 {
			decided(context.Background(), core.Observation{Reason: core.ReasonOverLimit, Key: fmt.Sprint(i), Capacity: 3})
		}
		for range 100 {
			decided(context.Background(), core.Observation{Reason: core.ReasonOverLimit, Key: "a", Capacity: 3})
		}
		time.Sleep(1500 * time.Millisecond)
		if k := v.all()[1].Limiters[0].Denied[0]; k.Count != 100 || k.Over < 1 {
			t.Errorf("%+v, want 100 and more that are possible", k)
		}
	})
}

// What came before a minute counts half, and a key that is no longer near its limit is no
// longer shown.
func TestWhatGetsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{}))
		t.Cleanup(func() { _ = page.Close() })
		time.Sleep(90500 * time.Millisecond) // the limiter comes later than the page
		l := core.Must(core.New(core.Config{Name: "api", Observer: page, Rules: []core.Rule{userRule}}))
		allow(l, 11, "alice")
		v := follow(t, page)
		at := func(second int) ([]int, []int) {
			for _, s := range v.all() {
				if s.Second == second {
					var denied, near []int
					for _, k := range s.Limiters[0].Denied {
						denied = append(denied, k.Count)
					}
					for _, k := range s.Limiters[0].Near {
						near = append(near, k.Ago)
					}
					return denied, near
				}
			}
			t.Fatalf("no second %d", second)
			return nil, nil
		}
		time.Sleep(200 * time.Second)
		for second, want := range map[int]string{90: "[8] [0]", 119: "[8] [29]", 120: "[4] [30]", 150: "[4] [60]", 151: "[4] []", 180: "[2] []", 240: "[1] []", 285: "[1] []"} {
			denied, near := at(second)
			if got := fmt.Sprint(denied, near); got != want {
				t.Errorf("in second %d: %s, want %s", second, got, want)
			}
		}
	})
}

// What no limit has decided is counted for the limiter as a whole, if it matters.
func TestWhatNoLimitHasDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{}))
		t.Cleanup(func() { _ = page.Close() })
		decided := page.Observe("api", []core.Rule{userRule}).Decided
		v := follow(t, page)
		for _, o := range []core.Observation{
			{Reason: core.ReasonFailed, Rule: -1}, {Reason: core.ReasonCanceled, Rule: -1},
			{Reason: core.ReasonSkipped, Rule: -1, Allowed: true}, {Reason: core.ReasonNoRule, Rule: -1, Allowed: true},
			{Reason: core.ReasonBadRequest, Rule: -1}, {Reason: core.ReasonOverLimit, Rule: -1},
			{Reason: core.ReasonWithinLimits, Capacity: 3, Remaining: 3, Allowed: true, Degraded: true},
			{Reason: core.ReasonOverLimit, Capacity: 3, Degraded: true},
		} {
			decided(context.Background(), o)
		}
		page.Observe("api", []core.Rule{userRule}) // as Reconfigure does: the counts stay
		time.Sleep(1500 * time.Millisecond)
		if s := v.all()[1].Limiters[0].Store; s.Errors != 1 || s.Degraded != 2 {
			t.Errorf("%+v", s)
		}
		if allowed, denied, dryRun := v.sum(0); allowed != 1 || denied != 1 || dryRun != 0 {
			t.Errorf("%d allowed, %d denied, %d dry run", allowed, denied, dryRun)
		}
	})
}

// The store's figures are those of the second that has passed.
func TestHowLongTheStoreTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{}))
		t.Cleanup(func() { _ = page.Close() })
		stored := page.Observe("api", []core.Rule{userRule}).Stored
		v := follow(t, page)
		stored(context.Background(), "take", 30*time.Millisecond, nil)
		stored(context.Background(), "take", 10*time.Millisecond, context.Canceled)
		time.Sleep(1500 * time.Millisecond)
		stored(context.Background(), "take", 2*time.Millisecond, nil)
		time.Sleep(2 * time.Second)
		for second, want := range []string{"{0 0 0 0 0 0}", "{2 1 0 0 20 30}", "{1 0 0 0 2 2}", "{0 0 0 0 0 0}"} {
			if got := fmt.Sprint(v.all()[second].Limiters[0].Store); got != want {
				t.Errorf("second %d: %s, want %s", second, got, want)
			}
		}
	})
}

func TestThePageAllocatesNothing(t *testing.T) {
	page := core.Must(live.New(live.Config{}))
	defer page.Close() //nolint:errcheck // always nil
	decided := page.Observe("api", []core.Rule{userRule}).Decided
	for name, o := range map[string]core.Observation{
		"allowed": {Remaining: 2, Capacity: 3, Allowed: true},
		"near":    {Remaining: 0, Capacity: 3, Allowed: true, Key: "alice"},
		"denied":  {Reason: core.ReasonOverLimit, Capacity: 3, Key: "alice"},
	} {
		if n := testing.AllocsPerRun(1000, func() { decided(context.Background(), o) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
