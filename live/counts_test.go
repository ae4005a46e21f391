package live_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/live"
)

// However many goroutines decide at a time, no decision is missing and none is there twice.
func TestCountsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, live.Config{}, core.Config{Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(10_000)}}}})
		v := follow(t, s.page)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for range 5 {
					time.Sleep(300 * time.Millisecond)
					s.take(1000, fmt.Sprint("user ", g%2))
				}
			})
		}
		wg.Wait()
		time.Sleep(2 * time.Second)
		l := v.api()
		if r := l.Rules[0]; sum(r.Allowed) != 20_000 || sum(r.Denied) != 20_000 || sum(r.DryRun) != 0 || len(r.Allowed) != 120 {
			t.Errorf("%+v, want 20000 allowed and denied", r)
		}
		if len(l.Denied) != 2 || l.Denied[0].Count+l.Denied[1].Count != 20_000 {
			t.Errorf("denied most: %+v", l.Denied)
		}
	})
}

// What is allowed only because of DryRun was denied to nobody.
func TestADryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, "alice"...), nil }
		s := newSite(t, live.Config{}, core.Config{DryRun: true, Rules: []core.Rule{{Name: "user", Limits: userRule.Limits, Key: key}}})
		v := follow(t, s.page)
		for range 5 {
			s.limiter.Check(floodgatetest.NewRequest(http.MethodGet, "/"))
		}
		time.Sleep(1500 * time.Millisecond)
		l := v.api()
		if r := l.Rules[0]; sum(r.Allowed) != 3 || sum(r.Denied) != 0 || sum(r.DryRun) != 2 || r.DryRun[119] != 2 || len(l.Denied) > 0 {
			t.Errorf("%+v", l)
		}
	})
}

// The counts of a second are the last ones of the second that follows, and move on.
func TestTheCountsOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, live.Config{}, core.Config{})
		v := follow(t, s.page)
		time.Sleep(500 * time.Millisecond)
		for second := range 121 {
			if second < 3 {
				s.take(second+1, "alice")
			}
			time.Sleep(time.Second)
		}
		if got := v.all()[3].Limiters[0].Rules[0]; fmt.Sprint(got.Allowed[116:], got.Denied[116:]) != "[0 1 2 0] [0 0 0 3]" {
			t.Errorf("%v, %v", got.Allowed, got.Denied)
		}
		if got := v.api().Rules[0].Allowed; got[0] != 2 || sum(got) != 2 {
			t.Errorf("two minutes later: %v", got)
		}
	})
}

// What no limit has decided is counted for the limiter as a whole, if it matters.
func TestWhatNoLimitHasDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{}))
		defer func() { _ = page.Close() }()
		o := page.Observe("api", []core.Rule{userRule})
		v := follow(t, page)
		for _, row := range []struct {
			d    core.Decision
			rule int
		}{
			{core.Decision{Reason: core.ReasonFailed}, -1},
			{core.Decision{Reason: core.ReasonCanceled}, -1},
			{core.Decision{Reason: core.ReasonSkipped, Allowed: true}, -1},
			{core.Decision{Reason: core.ReasonNoRule, Allowed: true}, -1},
			{core.Decision{Reason: core.ReasonBadRequest}, 0},
			{core.Decision{Reason: core.ReasonOverLimit}, -1},
			{core.Decision{Reason: core.ReasonWithinLimits, Allowed: true, Degraded: true}, 0},
			{core.Decision{Reason: core.ReasonOverLimit, Degraded: true}, 0},
		} {
			o.Decided(context.Background(), row.d, row.rule, 0)
		}
		for i, err := range []error{nil, context.Canceled, context.Canceled, context.Canceled} {
			o.Stored(context.Background(), "take", time.Duration(20*i)*time.Millisecond, err)
		}
		time.Sleep(1500 * time.Millisecond)
		l := v.api()
		if got := fmt.Sprint(l.Store); got != "{4 3 2 1 65.536}" {
			t.Errorf("asked, failed, degraded, errors, p99: %s", got)
		}
		if r := l.Rules[0]; sum(r.Allowed) != 1 || sum(r.Denied) != 1 {
			t.Errorf("%+v", r)
		}
		for i := range 200 { // 197 take 3 ms, one 30 ms, and two a second
			o.Stored(context.Background(), "take", time.Duration(3+i/197*27+i/198*970)*time.Millisecond, nil)
		}
		for _, want := range []string{"{200 0 0 0 32.768}", "{0 0 0 0 0}"} {
			time.Sleep(time.Second)
			if got := fmt.Sprint(v.api().Store); got != want {
				t.Errorf("a second later: %s, want %s", got, want)
			}
		}
	})
}

// What came before a minute counts half, and a key that is no longer near its limit is no
// longer shown.
func TestWhatGetsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, live.Config{}, core.Config{})
		time.Sleep(90500 * time.Millisecond)
		s.take(11, "alice")
		v := follow(t, s.page)
		time.Sleep(200 * time.Second)
		for after, want := range map[int]string{0: "8, near 2", 29: "8, near 2", 30: "4, near 1", 60: "4, near 1", 61: "4", 90: "2", 150: "1", 195: "1"} {
			l := v.all()[after].Limiters[0]
			got := fmt.Sprint(l.Denied[0].Count)
			for _, near := range l.Near {
				got += fmt.Sprint(", near ", near.Count)
				if near.Ago != after {
					t.Errorf("%d seconds later: near %d s ago", after, near.Ago)
				}
			}
			if got != want || l.Denied[0].Ago != after {
				t.Errorf("%d seconds later: denied %s, %d s ago, want %s", after, got, l.Denied[0].Ago, want)
			}
		}
		late := core.Must(core.New(core.Config{Name: "a-late-one", Observer: s.page, Rules: []core.Rule{userRule}}))
		_, _ = late.Take(t.Context(), 4, core.Hit{Rule: "user"})
		time.Sleep(time.Second)
		if l := v.api(); l.Name != "a-late-one" || l.Denied[0].Ago != 1 {
			t.Errorf("%+v", l)
		}
	})
}

// A key is near its limit if it has used more than half of it. The key that has used the
// largest share comes first, however often each key comes.
func TestTheKeysThatAreNearTheirLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		burst := core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 10}
		rules := []core.Rule{{Name: "user", Limits: []core.Limit{burst}}, {Name: "large", Limits: []core.Limit{core.PerHour(1000)}}}
		s := newSite(t, live.Config{ShowKey: func(_, _, key string) string { return key }}, core.Config{Rules: rules})
		_, _ = s.limiter.Take(t.Context(), 650, core.Hit{Rule: "large", Key: "large"})
		for i, used := range []int{1, 4, 5, 6, 9, 7, 10, 8} {
			s.take(used, fmt.Sprint(10-used))
			for range 2 * (8 - i) { // the first keys come most often
				_, _ = s.limiter.Take(context.Background(), 0, core.Hit{Rule: "user", Key: fmt.Sprint(10 - used)})
			}
		}
		var near []string
		for _, k := range follow(t, s.page).api().Near {
			near = append(near, fmt.Sprintf("%s: %d/%d", k.Label, k.Used, k.Capacity))
		}
		if got, want := fmt.Sprint(near), "[0: 10/10 1: 9/10 2: 8/10 3: 7/10 large: 650/1000 4: 6/10]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// An observer of a limiter whose rules change keeps the counts of those that stay.
func TestTheRulesOfAnotherConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, live.Config{}, core.Config{})
		v := follow(t, s.page)
		s.take(4, "alice")
		rules := []core.Rule{{Name: "new", Limits: []core.Limit{core.PerHour(1), core.PerDay(9)}}, {Name: "user", Limits: []core.Limit{core.PerMinute(2)}}}
		if err := s.limiter.Reconfigure(core.Config{Name: "api", Observer: s.page, Rules: rules}); err != nil {
			t.Fatal(err)
		}
		s.take(2, "alice")
		time.Sleep(1500 * time.Millisecond)
		l := v.api()
		if len(l.Rules) != 2 || l.Rules[0].Name+l.Rules[1].Name != "newuser" || sum(l.Rules[1].Denied) != 3 || len(l.Denied) != 1 || l.Denied[0].Count != 3 || l.Denied[0].Rule != "user" {
			t.Errorf("%+v", l)
		}
		if got := fmt.Sprint(l.Rules[0].Limits, l.Rules[1].Limits); got != "[1 per 1h 9 per 1d] [2 per 1m]" {
			t.Errorf("limits: %s", got)
		}
	})
}

// A viewer sees the page while configurations with new rules come into force.
func TestRulesThatComeWhileSomebodyWatches(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for n := range 100 {
			name := fmt.Sprintf("rule-%d", n)
			_ = s.limiter.Reconfigure(core.Config{Name: "api", Observer: s.page, Rules: []core.Rule{{Name: name, Limits: []core.Limit{core.PerMinute(0)}}}})
			s.limiter.Allow(context.Background(), core.Hit{Rule: name, Key: "k"})
		}
	})
	for range 100 {
		if l := s.see().Limiters; len(l) != 1 {
			t.Errorf("%+v", l)
		}
	}
}
