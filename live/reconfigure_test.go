package live_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

// An observer of a limiter whose rules change keeps the counts of those that stay.
func TestTheRulesOfAnotherConfiguration(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	s.take(4, "alice")
	rules := []core.Rule{{Name: "new", Limits: []core.Limit{core.PerHour(1)}}, userRule}
	if err := s.limiter.Reconfigure(core.Config{Name: "api", Observer: s.page, Rules: rules}); err != nil {
		t.Fatal(err)
	}
	s.take(2, "alice")
	l := s.watch()().Limiters[0]
	if len(l.Rules) != 2 || len(l.Denied) != 1 || l.Denied[0].Count != 3 || l.Denied[0].Rule != "user" {
		t.Errorf("%+v", l)
	}
}

// A viewer sees the page while configurations with new rules come into force.
func TestRulesThatComeWhileSomebodyWatches(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			name := fmt.Sprintf("rule-%d", n)
			_ = s.limiter.Reconfigure(core.Config{Name: "api", Observer: s.page, Rules: []core.Rule{{Name: name, Limits: []core.Limit{core.PerMinute(0)}}}})
			_, _ = s.limiter.Take(context.Background(), 1, core.Hit{Rule: name, Key: "k"})
		}
	}()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 300 {
		r := httptest.NewRequestWithContext(ended, http.MethodGet, "/?events", nil)
		s.page.ServeHTTP(httptest.NewRecorder(), r)
	}
	close(stop)
	<-done
}

// Of a rule that is gone, its name is kept, and not what it has counted.
func TestRulesThatAreRenamedForEver(t *testing.T) {
	page := core.Must(live.New(live.Config{}))
	defer page.Close() //nolint:errcheck // always nil
	rename := func(from, to int) {
		for n := from; n < to; n++ {
			page.Observe("api", []core.Rule{userRule, {Name: fmt.Sprint("rule ", n), Limits: userRule.Limits}})
		}
	}
	rename(0, 100)
	before := inUse()
	rename(100, 5100)
	if grown := (inUse() - before) / 5000; grown > 300 {
		t.Errorf("%d bytes for each rule that is gone", grown)
	}
}
