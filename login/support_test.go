package login_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/login"
)

// A denial cache in front of a shared store hides no limit.
func TestStatus(t *testing.T) {
	st := newSite(t, login.Config{}).status("alice", "203.0.113.1") // and the limits are those of the package comment
	if got := fmt.Sprint(st.Address.Limit, st.AddressAccount.Limit, st.Account.Limit, st.Trusted.Limit, login.DefaultDeviceFailures); got !=
		"20 per 1m 5 per 15m (fixed_window, waits of 30s × 2 up to 1h) 100 per 1h (bucketed_window, precision 5m) 50 per 1h (bucketed_window, precision 5m) 5 per 1h (fixed_window)" {
		t.Errorf("the limits are %s", got)
	}
	cached, _ := newInstances(t, redistest.Start(t).Addr, login.Config{})
	for _, s := range []*site{newSite(t, login.Config{}), cached} {
		s.right("192.0.2.7", "alice")
		s.wrongs(6, "203.0.113.1", "alice")
		if st := s.status("ALICE", "203.0.113.1"); st.AddressAccount.Allowed || st.AddressAccount.RetryAfter != 30*time.Second ||
			st.RetryAfter != 30*time.Second || st.Account.Remaining != 95 || st.Address.Remaining != 15 || st.Trusted.Remaining != 50 || st.KnownAddress {
			t.Errorf("%+v", st)
		}
		s.flood(200, "alice")
		if st := s.status("alice", "203.0.113.1"); st.Account.Allowed || st.RetryAfter != st.Account.RetryAfter || st.RetryAfter <= 30*time.Second {
			t.Errorf("a stranger while strangers are denied: %+v", st)
		}
		if st := s.status("alice", "192.0.2.7"); !st.KnownAddress || st.RetryAfter != 0 {
			t.Errorf("at home: %+v", st)
		}
		s.wrongs(4, "203.0.113.2", "carol")
		if st := s.status("carol", "203.0.113.2"); st.AddressAccount.Remaining != 1 || !st.AddressAccount.Allowed || st.RetryAfter != 0 {
			t.Errorf("one attempt is left: %+v", st)
		}
	}
}

func TestATextThatIsNoAddressIsAnError(t *testing.T) {
	g := newSite(t, login.Config{}).guard
	for _, address := range []string{"", "nonsense", "203.0.113.1:80", "10.0.0.0/8"} {
		_, err := g.Status(t.Context(), "alice", address)
		for method, err := range map[string]error{"Status": err, "UnblockAddress": g.UnblockAddress(t.Context(), address), "Trust": g.Trust(t.Context(), "alice", address)} {
			if err == nil || !strings.HasPrefix(err.Error(), "login: "+method+": the address must be an IP address, such as 203.0.113.9: ") {
				t.Errorf("%s of %q: %v", method, address, err)
			}
		}
	}
}

// The responses are equal for an account that exists and one that does not, with and without
// a Forget, and for a cookie that is not valid any more and for none.
func TestResponsesDoNotRevealWhetherAnAccountExists(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}})
	answers := func(user, cookie string) string {
		text := ""
		for i := range 130 {
			r := with(cookie, ip(i), user)
			d := s.guard.Check(r)
			text += fmt.Sprint(d.AppendHeaders(nil))
			if !d.Allowed {
				text += fmt.Sprint(s.guard.Deny(r, d))
			} else {
				s.guard.Settle(r, d, core.Outcome{Status: 401})
			}
		}
		s.clock.Advance(2 * time.Hour)
		return text
	}
	a := answers("alice", "")
	old := s.cookieOf("bob")
	s.right("192.0.2.1", "bob")
	for _, user := range []string{"bob", "nobody"} {
		s.must(s.guard.Forget(t.Context(), user))
	}
	for name, got := range map[string]string{
		"one that exists and was forgotten":         answers("bob", ""),
		"one that does not exist and was forgotten": answers("nobody", ""),
		"a cookie from before the Forget":           answers("bob", old),
		"a cookie of another account":               answers("carol", old),
	} {
		if got != a {
			t.Errorf("%s: the answers differ", name)
		}
	}
	if strings.Contains(a, "account") || strings.Contains(a, "Ratelimit") || strings.Contains(a, "trusted") {
		t.Errorf("a denial tells: %s", a)
	}
}

// Each Unblock resets the failures of each address once, whenever the account was unblocked before.
func TestEachUnblockResetsEachAddressOnce(t *testing.T) {
	failures := login.DefaultFailures
	failures.Lockout = core.Lockout{First: time.Hour, Factor: 1}
	for _, between := range []time.Duration{0, 59 * time.Minute, 61 * time.Minute, 366 * 24 * time.Hour} {
		s := newSite(t, login.Config{Failures: failures, AccountFailures: core.PerHour(100_000)})
		for range 3 {
			s.wrongs(6, "203.0.113.1", "alice")
			s.must(s.guard.Unblock(t.Context(), "alice"))
			s.clock.Advance(50 * time.Second)
			if got := s.wrongs(6, "203.0.113.1", "alice"); got != "map[401:5 429:1]" || s.status("alice", "203.0.113.1").AddressAccount.Allowed {
				t.Errorf("%v between: after Unblock: %s, or Status says something else", between, got)
			}
			s.clock.Advance(between)
		}
	}
}

func TestAnAccountCanBeUnblockedAThousandTimes(t *testing.T) {
	s := newSite(t, login.Config{})
	unblocked := 0
	for err := error(nil); err == nil; unblocked++ {
		if err = s.guard.Unblock(t.Context(), "alice"); err != nil && (unblocked < 1000 || !strings.Contains(err.Error(), "full")) {
			t.Fatalf("the %d-th time: %v", unblocked, err)
		}
	}
	s.must(s.guard.Unblock(t.Context(), "bob"))
}

// UnblockAddress lets an address in, that of a whole IPv6 network too, and resets no failures.
func TestUnblockAddress(t *testing.T) {
	for seen, typed := range map[string]string{"203.0.113.1": "203.0.113.1", "2001:db8::1": "2001:db8::2"} {
		s := newSite(t, login.Config{})
		many(30, func(i int) int { return s.wrong(seen, ip(i)) })
		if st := s.status("alice", seen); st.Address.Allowed || st.RetryAfter != st.Address.RetryAfter {
			t.Errorf("%s: %+v", seen, st)
		}
		s.wrongs(5, "203.0.113.9", "alice")
		s.must(s.guard.UnblockAddress(t.Context(), typed))
		if st := s.status("alice", seen); !st.Address.Allowed || st.Account.Remaining != 95 {
			t.Errorf("%s: %+v", seen, st)
		}
	}
}

// The other instance has just denied the account. The Unblock resets the failures of the
// address and of the account.
func TestAnUnblockTakesEffectOnOtherInstancesWithinASecond(t *testing.T) {
	for name, c := range map[string]login.Config{
		"address and account": {}, "account": {AccountFailures: core.Limit{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow}},
	} {
		c.Attempts = core.PerMinute(1000)
		here, there := newInstances(t, redistest.Start(t).Addr, c)
		there.wrongs(8, "203.0.113.1", "alice")
		there.want(there.wrongs(20, "203.0.113.1", "alice"), "map[429:20]")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		here.must(here.guard.Unblock(gone, "alice"))
		here.clock.Advance(time.Second)
		if got := there.wrongs(1, "203.0.113.1", "alice"); got != "map[401:1]" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Only a limit that denies has the text of too many attempts: a guard whose store fails, or
// that cannot read the username, says so. There is no event then. A function of the application
// gets this denial, and may change it.
func TestTheStandardDenialSaysWhyItDenies(t *testing.T) {
	counters, store := private()
	var standard core.Denial
	var log bytes.Buffer
	s := newSite(t, login.Config{Store: counters, Log: slog.New(slog.NewTextHandler(&log, nil)), OnDisallowed: func(_ core.Request, d core.Decision, denial core.Denial) core.Denial {
		standard = denial
		return core.Denial{Status: d.Status() + 1}
	}})
	s.wrongs(5, "203.0.113.1", "alice")
	for _, row := range []struct {
		user   string
		gone   bool
		status int
		text   string
	}{{"alice", false, 429, `{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"Too many attempts to log in. Try again later."}`}, {"", false, 400, "missing or empty"}, {"alice", true, 503, "Try again later."}} {
		store.gone.Store(row.gone)
		s.last.Store(nil)
		r := form("203.0.113.1", row.user)
		d := s.guard.Check(r)
		if changed := s.guard.Deny(r, d); changed.Status != row.status+1 || changed.Body != nil || errors.Is(d.Err, errGone) != row.gone {
			t.Errorf("the application's denial of %v: %+v", d, changed)
		}
		denial := standard
		if e := s.last.Load(); (e != nil) != (row.status == 429) {
			t.Errorf("%d: the event %+v", row.status, e)
		}
		if body := string(denial.Body); denial.Status != row.status || !strings.Contains(body, fmt.Sprintf(`"status":%d,`, row.status)) ||
			!strings.Contains(body, row.text) || strings.Contains(body, "address") || strings.Contains(log.String(), "limiter=login ") != row.gone {
			t.Errorf("%d, want %d: %s; logged: %s", denial.Status, row.status, body, &log)
		}
	}
}
