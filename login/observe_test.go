package login_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

// watcher is an observer that counts what the guard decides.
type watcher struct {
	stats  core.Stats
	rules  []string
	keys   []string
	seen   []core.Observation
	events map[string]int
}

func (w *watcher) Observe(_ string, rules []core.Rule) core.ObserverFuncs {
	for _, r := range rules {
		w.rules = append(w.rules, r.Name)
	}
	w.events = map[string]int{}
	return core.ObserverFuncs{
		Keys: true,
		Decided: func(_ context.Context, o core.Observation) {
			switch {
			case o.Reason == core.ReasonFailed:
				w.stats.Failed++
			case o.Reason == core.ReasonBadRequest:
				w.stats.BadRequests++
			case o.Reason == core.ReasonSkipped:
				w.stats.Skipped++
			case o.Allowed:
				w.stats.Allowed++
			default:
				w.stats.Denied++
			}
			if o.Key != "" {
				w.keys = append(w.keys, o.Key)
			}
			w.seen = append(w.seen, o)
		},
		Reported: func(_ context.Context, event string) { w.events[event]++ },
	}
}

// The guard's limiter decides up to three times on an attempt. The observer is told of each
// attempt once: so its counts are those of Stats.
func TestObserverIsToldOfEachAttemptOnce(t *testing.T) {
	for _, denies := range []bool{false, true} {
		w, events := &watcher{}, map[string]int{}
		c := login.Config{Secrets: [][]byte{secret}, Observer: w, Identify: denies, OnEvent: func(e login.Event) { events[e.Kind.String()]++ }}
		if denies {
			c.OnSuspicion = func(core.Request, login.Suspicion) login.Verdict {
				return login.Verdict{Deny: &core.Denial{Status: http.StatusForbidden}}
			}
		}
		s := newSite(t, c)
		s.right("192.0.2.7", "alice") // a known address
		many(7, func(int) int { return s.wrong("203.0.113.1", "alice") })
		many(200, func(i int) int { return s.wrong(ip(i), "alice") })
		many(9, func(int) int { return s.wrong("192.0.2.7", "alice") })
		if err := s.guard.Unblock(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		many(9, func(int) int { return s.wrong("203.0.113.1", "alice") })
		many(9, func(int) int { return s.serve(s.withCookie(form("203.0.113.1", "bob"), "bob"), 401) })
		s.serve(form("203.0.113.9", ""), 200)
		s.cancel("203.0.113.8", "carol")
		if got := s.guard.Stats(); got != w.stats || got.Denied == 0 || got.BadRequests == 0 {
			t.Errorf("observed %+v, Stats %+v", w.stats, got)
		}
		if fmt.Sprint(w.events) != fmt.Sprint(events) || w.events["suspected"] == 0 || w.events["canceled"] != 1 {
			t.Errorf("reported %v, events %v", w.events, events)
		}
		if denies == (len(w.keys) == 0) {
			t.Errorf("Identify %v: %d keys", denies, len(w.keys))
		}
		denied := map[string]int{}
		for _, o := range w.seen {
			if o.Reason == core.ReasonOverLimit && o.Rule >= 0 {
				denied[w.rules[o.Rule]]++
			}
		}
		if denied["address-account"] == 0 || denies == (denied["account"] > 0) {
			t.Errorf("Deny %v: denied by %v", denies, denied)
		}
	}
}

// Keys that the guard joins are taken apart by keyfuncs.SplitKeys.
func TestKeysOfTheGuardCanBeSplit(t *testing.T) {
	w := &watcher{}
	s := newSite(t, login.Config{Secrets: [][]byte{secret}, Observer: w, Identify: true})
	many(6, func(int) int { return s.wrong("203.0.113.1", "alice") })
	many(9, func(int) int { return s.serve(s.withCookie(form("203.0.113.2", "bob"), "bob"), 401) })
	split := map[string]bool{}
	for _, o := range w.seen {
		if o.Rule < 0 {
			continue
		}
		switch keys := keyfuncs.SplitKeys(o.Key); w.rules[o.Rule] {
		case "address-account":
			split[strings.Join(keys, " ")] = true
		case "device":
			split[fmt.Sprint("device of ", keys[len(keys)-1])] = len(keys) == 2
		}
	}
	if !split["203.0.113.1 alice"] || !split["device of bob"] || len(split) != 2 {
		t.Errorf("%v", split)
	}
}

// The guard hides no value of the request's context from key functions, with an observer and without one.
func TestTheValuesOfARequestsContextStay(t *testing.T) {
	type proxied struct{}
	for _, o := range []core.Observer{nil, &watcher{}} {
		s := newSite(t, login.Config{Observer: o, ClientIP: keyfuncs.Func(func(r core.Request) (string, error) {
			address, _ := r.Context().Value(proxied{}).(string)
			return address, nil
		})})
		attempt := func(address string) int {
			r := form("192.0.2.1", "alice")
			r.ctx = context.WithValue(t.Context(), proxied{}, address)
			return s.serve(r, http.StatusUnauthorized)
		}
		s.want(many(6, func(int) int { return attempt("203.0.113.1") }), "map[401:5 429:1]")
		s.want(many(1, func(int) int { return attempt("203.0.113.2") }), "map[401:1]")
	}
}
