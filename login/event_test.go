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

// Without Identify, nothing that a client has written is in an event.
func TestEvents(t *testing.T) {
	for _, identify := range []bool{false, true} {
		var events []login.Event
		s := newSite(t, login.Config{Identify: identify, Secrets: [][]byte{secret}, OnEvent: func(e login.Event) { events = append(events, e) }})
		s.serve(&request{ctx: t.Context(), method: http.MethodGet, peer: "203.0.113.1"}, http.StatusNotFound) // no attempt, no event
		s.serve(form("203.0.113.2", "alice"), http.StatusInternalServerError)                                 // no result, no event
		s.wrongs(6, "203.0.113.1", "alice")
		s.right("203.0.113.2", "Alice")
		s.serve(with(s.cookieOf("alice"), "203.0.113.1", "alice"), 200)
		s.right("203.0.113.2", "alice")
		kinds := ""
		for _, e := range events {
			kinds += string(e.Kind) + e.Trust + " "
			if identify && (e.Account != "alice" || !strings.HasPrefix(e.Address, "203.0.113.")) {
				t.Errorf("%+v", e)
			}
			if !identify && (len(e.Account) != 32 || e.Account != events[0].Account || len(e.Address) != 32) {
				t.Errorf("%+v", e)
			}
		}
		if kinds != "failed failed failed failed failed denied succeeded succeededdevice succeededaddress " || events[5].Rule != "address-account" || events[5].RetryAfter != 30*time.Second {
			t.Errorf("events: %s, %+v", kinds, events[5])
		}
		if events[0].Address == events[6].Address || events[0].Address != events[7].Address {
			t.Error("addresses are not told apart")
		}
	}
}

// The hashes depend on the first secret and on the account or the address, and on nothing else.
func TestEventsHaveKeyedHashesOfAccountsAndAddresses(t *testing.T) {
	event := func(secrets [][]byte, ip, user string) login.Event {
		s := newSite(t, login.Config{Secrets: secrets})
		s.wrong(ip, user)
		return *s.last.Load()
	}
	a := event([][]byte{secret}, "203.0.113.1", "alice")
	// An audit log keeps them.
	if a.Account != "240ec5925506bafb7ab815860d621b12" || a.Address != "62c36cfd9d47949b5922bfc5c9653531" {
		t.Errorf("the hashes have changed: %+v", a)
	}
	if b := event([][]byte{secret, otherSecret}, "203.0.113.2", " ALICE "); b.Account != a.Account || b.Address == a.Address {
		t.Errorf("%+v and %+v", a, b)
	}
	for name, b := range map[string]login.Event{
		"another account": event([][]byte{secret}, "203.0.113.1", "bob"), "another secret": event([][]byte{otherSecret}, "203.0.113.1", "alice"),
		"no secret": event(nil, "203.0.113.1", "alice"),
	} {
		if b.Account == a.Account {
			t.Errorf("%s: %+v and %+v", name, a, b)
		}
	}
	if b := event([][]byte{secret}, "203.0.113.1", "203.0.113.1"); b.Account == b.Address {
		t.Errorf("an account has the hash of an address with its text: %+v", b)
	}
	if b, c := event(nil, "203.0.113.1", "alice"), event(nil, "203.0.113.1", "alice"); b.Account == c.Account || b.Address == c.Address {
		t.Errorf("without a secret: %+v and %+v", b, c)
	}
}

// watcher is an observer that counts what the guard decides.
type watcher struct {
	rules  []string
	counts map[string]int // decisions by reason, events
	denied map[string]int // by rule
	keys   map[string]bool
}

func (w *watcher) Observe(_ string, rules []core.Rule) core.ObserverFuncs {
	for _, r := range rules {
		w.rules = append(w.rules, r.Name)
	}
	w.counts, w.denied, w.keys = map[string]int{}, map[string]int{}, map[string]bool{}
	return core.ObserverFuncs{
		Decided: func(_ context.Context, d core.Decision, rule, _ int) {
			w.counts[d.Reason.String()]++
			if rule < 0 {
				return
			}
			if !d.Allowed {
				w.denied[w.rules[rule]]++
			}
			for _, part := range append(keyfuncs.SplitKeys(d.Key()), d.Key()) {
				w.keys[w.rules[rule]+": "+part] = true
			}
		},
		Reported: func(_ context.Context, event string) { w.counts[event]++ },
	}
}

// Each attempt is one decision. Its key is taken apart by keyfuncs.SplitKeys.
func TestTheObserverIsToldOfEachAttemptOnce(t *testing.T) {
	w, events := &watcher{}, map[login.EventKind]int{}
	s := newSite(t, login.Config{Secrets: [][]byte{secret}, Observer: w, OnEvent: func(e login.Event) { events[e.Kind]++ }})
	s.right("192.0.2.7", "alice") // a known address
	s.wrongs(7, "203.0.113.1", "alice")
	s.flood(200, "alice")
	s.wrongs(9, "192.0.2.7", "alice")
	cookie := s.cookieOf("bob")
	many(9, func(int) int { return s.serve(with(cookie, "203.0.113.1", "bob"), 401) })
	s.serve(form("203.0.113.9", ""), 200)
	s.cancel("203.0.113.8", "carol")
	if w.counts["bad request"] != 1 || w.counts["within limits"]+w.counts["over limit"] != 227 {
		t.Errorf("observed %v", w.counts)
	}
	for kind, n := range events {
		if w.counts[string(kind)] != n {
			t.Errorf("reported %v, events %v", w.counts, events)
		}
	}
	if w.counts["suspected"] == 0 || w.counts["canceled"] != 1 || w.denied["address-account"] == 0 || w.denied["account"] == 0 {
		t.Errorf("reported %v, denied %v", w.counts, w.denied)
	}
	for _, key := range []string{"address-account: 203.0.113.1", "address-account: alice", "account: alice", "device: bob"} {
		if !w.keys[key] {
			t.Errorf("keys %v, want %s", w.keys, key)
		}
	}
	guard := core.Must(login.NewGuard(login.Config{Field: "username", Observer: w})) // without OnEvent
	r := form("203.0.113.1", "alice")
	d := guard.Check(r)
	for range 2 { // the second time does nothing
		guard.Settle(r, d, core.Outcome{Status: 401})
	}
	if s.must(guard.Close()); w.counts["failed"] != 1 {
		t.Errorf("without OnEvent: reported %v", w.counts)
	}
}

// A handler that answers a wrong password with the form and 200 turns the guard off. A client
// of Basic authentication sends the right password each time.
func TestAGuardLogsThatNoAttemptFails(t *testing.T) {
	defer slog.SetDefault(slog.Default())
	for _, row := range []struct {
		failed int // which attempt fails; -1: none
		basic  bool
		want   int // lines
	}{{-1, false, 1}, {98, false, 0}, {99, false, 0}, {100, false, 1}, {-1, true, 0}} {
		var log bytes.Buffer
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		s := newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser(), keyfuncs.PostField("username")}, Methods: []string{"GET", "POST"}, Attempts: core.PerMinute(1000)})
		for i := range 200 {
			switch {
			case row.basic:
				s.serve(basicGet("Basic YWxpY2U6eA=="), http.StatusOK)
			case i == row.failed:
				s.wrong(ip(i), "alice")
			default:
				s.right(ip(i), "alice")
			}
		}
		if got := strings.Count(log.String(), "limiter=login attempts=100"); got != row.want || strings.Count(log.String(), `level=WARN msg="login: no attempt has failed so far.`) != got || strings.Count(log.String(), "\n") != got {
			t.Errorf("%s: %d lines\n%s", fmt.Sprint(row), got, &log)
		}
	}
}
