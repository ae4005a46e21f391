package login_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

func TestEvents(t *testing.T) {
	for _, identify := range []bool{false, true} {
		var events []login.Event
		s := newSite(t, login.Config{Identify: identify, Secrets: [][]byte{secret}, OnEvent: func(e login.Event) { events = append(events, e) }})
		many(6, func(int) int { return s.wrong("203.0.113.1", "alice") })
		s.right("203.0.113.2", "Alice")
		s.serve(s.withCookie(form("203.0.113.1", "alice"), "alice"), 200)
		kinds := ""
		for _, e := range events {
			kinds += e.Kind.String() + e.Trust + " "
			if text := fmt.Sprintf("%+v", e); identify != (strings.Contains(text, "alice") && strings.Contains(text, "203.0.113")) {
				t.Errorf("identify %v: %s", identify, text)
			}
			if len(e.Account) != 32 || e.Account != events[0].Account || len(e.Address) != 32 {
				t.Errorf("%+v", e)
			}
		}
		if kinds != "failed failed failed failed failed denied succeeded succeededdevice " || events[5].Rule != "address-account" || events[5].RetryAfter != 30*time.Second {
			t.Errorf("events: %s, %+v", kinds, events[5])
		}
		if events[0].Address == events[6].Address || events[0].Address != events[7].Address {
			t.Error("addresses are not told apart")
		}
	}
}

// The hashes depend on the first secret and on the account or the address, and on nothing
// else.
func TestEventsHaveKeyedHashesOfAccountsAndAddresses(t *testing.T) {
	event := func(secrets [][]byte, ip, user string) login.Event {
		var e trusts
		newSite(t, login.Config{Secrets: secrets, OnEvent: e.event}).wrong(ip, user)
		return e.last
	}
	a := event([][]byte{secret}, "203.0.113.1", "alice")
	if b := event([][]byte{secret, []byte(strings.Repeat("o", 32))}, "203.0.113.1", " ALICE "); b.Account != a.Account || b.Address != a.Address {
		t.Errorf("%+v and %+v differ", a, b)
	}
	for name, b := range map[string]login.Event{
		"another account": event([][]byte{secret}, "203.0.113.1", "bob"), "another secret": event([][]byte{[]byte(strings.Repeat("o", 32))}, "203.0.113.1", "alice"), "no secret": event(nil, "203.0.113.1", "alice"),
	} {
		if b.Account == a.Account || len(b.Account) != 32 {
			t.Errorf("%s: %+v and %+v", name, a, b)
		}
	}
	// An audit log keeps them.
	if a.Account != "240ec5925506bafb7ab815860d621b12" || a.Address != "62c36cfd9d47949b5922bfc5c9653531" {
		t.Errorf("the hashes have changed: %+v", a)
	}
	if b, c := event(nil, "203.0.113.1", "alice"), event(nil, "203.0.113.1", "alice"); b.Account == c.Account || b.Address == c.Address {
		t.Errorf("without a secret: %+v and %+v", b, c)
	}
	if b := event([][]byte{secret}, "203.0.113.2", "alice"); b.Address == a.Address || b.Account != a.Account {
		t.Errorf("another address: %+v and %+v", a, b)
	}
	// An account has another hash than an address of the same text.
	var e trusts
	newSite(t, login.Config{Secrets: [][]byte{secret}, OnEvent: e.event}).wrong("203.0.113.1", "203.0.113.1")
	if e.last.Account == e.last.Address {
		t.Errorf("%+v", e.last)
	}
	for kind, want := range map[login.EventKind]string{login.EventDenied: "denied", login.EventFailed: "failed", login.EventSucceeded: "succeeded", login.EventSuspected: "suspected", login.EventCanceled: "canceled", 200: "unknown"} {
		if got := fmt.Sprint(kind); got != want {
			t.Errorf("%d is %q", kind, got)
		}
	}
}

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

func TestAGuardLogsThatItsStoreFails(t *testing.T) {
	var log bytes.Buffer
	store := core.Must(core.NewMemory(core.MemoryConfig{}))
	s := newSite(t, login.Config{Store: store, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if got := s.serve(form("192.0.2.1", "alice"), http.StatusUnauthorized); got != http.StatusServiceUnavailable {
			t.Errorf("status %d", got)
		}
	}
	if strings.Count(log.String(), "the store failed") != 1 || !strings.Contains(log.String(), "limiter=login") ||
		strings.Contains(log.String(), "alice") || strings.Contains(log.String(), "192.0.2.1") {
		t.Errorf("logged: %s", &log)
	}
}

// A client of an API sends the right password each time.
func TestNothingIsLoggedIfNoRequestWithBasicAuthenticationFails(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser()}, Methods: []string{"GET"}, Attempts: core.PerMinute(1000), Log: slog.New(slog.NewTextHandler(&log, nil))})
	s.want(many(200, func(int) int { return s.serve(basicGet("Basic YWxpY2U6eA=="), http.StatusOK) }), "map[200:200]")
	if log.Len() > 0 {
		t.Errorf("logged: %s", &log)
	}
}

// A handler that answers a wrong password with the form and 200 turns the guard off.
func TestAGuardLogsThatNoAttemptFails(t *testing.T) {
	for _, failed := range []int{-1, 0, 98, 99, 150} { // which attempt fails; -1: none
		var log bytes.Buffer
		s := newSite(t, login.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		lines := 0
		for i := range 200 {
			if i == failed {
				s.wrong(ip(i), "alice")
			} else {
				s.right(ip(i), "alice")
			}
			if n := strings.Count(log.String(), "no attempt has failed so far"); n > lines {
				if lines = n; i != 99 || !strings.Contains(log.String(), "attempts=100\n") {
					t.Errorf("logged after %d attempts", i+1)
				}
			}
		}
		if want := failed < 0 || failed > 99; want != (lines == 1) || lines > 1 {
			t.Errorf("attempt %d fails: %d lines\n%s", failed, lines, &log)
		}
	}
}
