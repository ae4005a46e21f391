package live_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

// What the page shows of a second is not changed by what comes while it is made: a limiter that comes before the others
// by name, and other limits of a rule.
func TestTheStateOfASecondStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var page *live.Page
		meanwhile := func() {
			page.Observe("a", []core.Rule{userRule})
			page.Observe("m", []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(7)}}})
		}
		page = core.Must(live.New(live.Config{ShowKey: func(_, _, key string) string {
			if meanwhile != nil {
				meanwhile()
				meanwhile = nil
			}
			return key
		}}))
		t.Cleanup(func() { _ = page.Close() })
		for _, name := range []string{"m", "n", "o"} {
			decided := page.Observe(name, []core.Rule{userRule}).Decided
			decided(context.Background(), core.Observation{Reason: core.ReasonOverLimit, Key: "k", Capacity: 3})
		}
		v := follow(t, page)
		time.Sleep(1500 * time.Millisecond)
		for i, want := range [][]string{{"m", "n", "o"}, {"a", "m", "n", "o"}} {
			var got []string
			for _, l := range v.all()[i].Limiters {
				got = append(got, l.Name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("event %d: got the limiters %q, want %q", i, got, want)
			}
		}
		if got, want := v.all()[0].Limiters[0].Rules[0].Limits, any([]any{core.PerMinute(3).String()}); !slices.Equal(got.([]any), want.([]any)) {
			t.Errorf("got the limits %v, want %v", got, want)
		}
	})
}

// Of an action on a row, the application and the log learn the rule and the key, not the hash that the browser has sent.
func TestWhoChangesARowIsToldTheKey(t *testing.T) {
	var asked live.Action
	s := newSite(t, live.Config{Authorize: func(_ *http.Request, a live.Action) (string, error) {
		asked = a
		return "olga", nil
	}}, core.Config{})
	s.take(5, "alice")
	id := s.watch()().Limiters[0].Denied[0].ID
	if got := s.post(`{"do":"unblock","limiter":"api","id":"` + id + `"}`); got.status != http.StatusOK {
		t.Errorf("%+v", got)
	}
	if want := (live.Action{Name: "unblock", Limiter: "api", Rule: "user", Key: "alice"}); asked != want {
		t.Errorf("Authorize was asked for %+v, want %+v", asked, want)
	}
}

// A key that was near its limit long ago makes room for others: its weight is halved each minute.
func TestKeysThatWereNearTheirLimitLoseWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decided, v := watched(t)
		near := func(n int) {
			for range n {
				decided(context.Background(), core.Observation{Reason: core.ReasonWithinLimits, Allowed: true, Key: "k", Capacity: 3})
			}
		}
		near(200_000)
		time.Sleep(70 * time.Second)
		near(10)
		time.Sleep(time.Second)
		all := v.all()
		if got := all[len(all)-1].Limiters[0].Near; len(got) != 1 || got[0].Count != 100_010 {
			t.Errorf("got %+v, want a count of 100010: half of 200000, and 10", got)
		}
	})
}
