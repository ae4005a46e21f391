package login_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/login"
)

func TestStatus(t *testing.T) {
	s := newSite(t, login.Config{})
	ctx := context.Background()
	s.right("192.0.2.7", "alice")
	many(6, func(int) int { return s.wrong("203.0.113.1", "alice") })
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	st, err := s.guard.Status(ctx, "ALICE", "203.0.113.1")
	if err != nil || !st.Account.Denied || !st.AddressAccount.Denied || st.AddressAccount.RetryAfter != 30*time.Second || st.Address.Remaining != 15 || st.KnownAddress || st.RetryAfter < 30*time.Second {
		t.Errorf("%+v, %v", st, err)
	}
	if st, err := s.guard.Status(ctx, "alice", "192.0.2.7"); err != nil || !st.KnownAddress || st.RetryAfter != 0 {
		t.Errorf("at home: %+v, %v", st, err)
	}
	many(4, func(int) int { return s.wrong("203.0.113.2", "carol") })
	if st, err := s.guard.Status(ctx, "carol", "203.0.113.2"); err != nil || st.AddressAccount.Remaining != 1 || st.AddressAccount.Denied || st.RetryAfter != 0 {
		t.Errorf("one attempt is left: %+v, %v", st, err)
	}
	if st, err := s.guard.Status(ctx, "bob", "2001:db8::1"); err != nil || st.RetryAfter != 0 || st.Account.Remaining != 100 {
		t.Errorf("another account: %+v, %v", st, err)
	}
}

// The responses are equal for an account that exists and one that does not, with and without
// a Forget, and for a cookie that is not valid any more and for none.
func TestResponsesDoNotRevealWhetherAnAccountExists(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}})
	answers := func(user string, prepare func(r *request)) string {
		text := ""
		for i := range 130 {
			r := form(ip(i), user)
			if prepare != nil {
				prepare(r)
			}
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
	a := answers("alice", nil)
	old := s.cookieOf("bob")
	s.right("192.0.2.1", "bob")
	for _, user := range []string{"bob", "nobody"} {
		if err := s.guard.Forget(t.Context(), user); err != nil {
			t.Fatal(err)
		}
	}
	for name, got := range map[string]string{
		"an account that does not exist":            answers("nobody at all", nil),
		"one that exists and was forgotten":         answers("bob", nil),
		"one that does not exist and was forgotten": answers("nobody", nil),
		"a cookie from before the Forget":           answers("bob", func(r *request) { r.header.Set("Cookie", old) }),
		"a cookie of another account":               answers("carol", func(r *request) { r.header.Set("Cookie", old) }),
	} {
		if got != a {
			t.Errorf("%s: the answers differ", name)
		}
	}
	if strings.Contains(a, "account") || strings.Contains(a, "Ratelimit") || strings.Contains(a, "trusted") {
		t.Errorf("a denial tells: %s", a)
	}
}

// Each Unblock resets the failures of each address once, whenever the account was unblocked
// before.
func TestEachUnblockResetsEachAddressOnce(t *testing.T) {
	failures := login.DefaultFailures
	failures.Lockout = core.Lockout{First: time.Hour, Factor: 1}
	for _, between := range []time.Duration{0, time.Minute, 59 * time.Minute, 61 * time.Minute, 366 * 24 * time.Hour} {
		s := newSite(t, login.Config{Failures: failures, AccountFailures: core.PerHour(100_000)})
		for range 3 {
			many(6, func(int) int { return s.wrong("203.0.113.1", "alice") })
			if err := s.guard.Unblock(t.Context(), "alice"); err != nil {
				t.Fatal(err)
			}
			if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1"); err != nil || st.RetryAfter != 0 || st.AddressAccount.Remaining != 5 {
				t.Errorf("%v between: after Unblock: %+v, %v", between, st, err)
			}
			s.clock.Advance(50 * time.Second)
			s.want(many(6, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:1]")
			s.clock.Advance(between)
		}
	}
}

func TestStatusRejectsATextThatIsNoAddress(t *testing.T) {
	s := newSite(t, login.Config{})
	for _, address := range []string{"", "nonsense", "203.0.113.1:80", "10.0.0.0/8"} {
		if st, err := s.guard.Status(context.Background(), "alice", address); err == nil {
			t.Errorf("%q: %+v", address, st)
		}
	}
}

// UnblockAddress lets an address in, that of a whole IPv6 network too, and forgets no failures.
func TestUnblockAddress(t *testing.T) {
	for seen, typed := range map[string]string{"203.0.113.1": "203.0.113.1", "2001:db8::1": "2001:db8::2"} {
		s := newSite(t, login.Config{})
		many(30, func(i int) int { return s.wrong(seen, ip(i)) })
		if st, err := s.guard.Status(t.Context(), "alice", seen); err != nil || !st.Address.Denied {
			t.Errorf("%s: %+v, %v", seen, st, err)
		}
		many(5, func(int) int { return s.wrong("203.0.113.9", "alice") })
		if err := s.guard.UnblockAddress(t.Context(), typed); err != nil {
			t.Error(err)
		}
		st, err := s.guard.Status(t.Context(), "alice", seen)
		if err != nil || st.Address.Denied || st.Account.Remaining != st.Account.Limit.Quota-5 {
			t.Errorf("%s: %+v, %v", seen, st, err)
		}
	}
	if err := newSite(t, login.Config{}).guard.UnblockAddress(t.Context(), "alice"); err == nil {
		t.Error("a username is taken for an address")
	}
}

// The other instance has just denied the account. The Unblock resets the failures of the
// address and of the account.
func TestAnUnblockTakesEffectOnOtherInstancesWithinASecond(t *testing.T) {
	for name, c := range map[string]login.Config{
		"address and account": {Attempts: core.PerMinute(1000)},
		"account":             {Attempts: core.PerMinute(1000), AccountFailures: core.Limit{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow}, ForgetAddresses: true},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := newInstances(t, redistest.Start(t).Addr, c)
			many(8, func(int) int { return there.wrong("203.0.113.1", "alice") })
			there.want(many(20, func(int) int { return there.wrong("203.0.113.1", "alice") }), "map[429:20]")
			if err := here.guard.Unblock(context.Background(), "alice"); err != nil {
				t.Fatal(err)
			}
			here.clock.Advance(time.Second)
			there.want(many(1, func(int) int { return there.wrong("203.0.113.1", "alice") }), "map[401:1]")
		})
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
	if err := s.guard.Unblock(t.Context(), "bob"); err != nil {
		t.Errorf("another account: %v", err)
	}
}

// Only a limit that denies has the text of too many attempts: a guard whose store fails, or that cannot read the
// username, says so.
func TestTheStandardDenialSaysWhyItDenies(t *testing.T) {
	counters, store := private(t)
	s := newSite(t, login.Config{Store: counters, Log: slog.New(slog.DiscardHandler)})
	denial := func(r *request) core.Denial {
		t.Helper()
		d := s.guard.Check(r)
		if d.Allowed {
			t.Fatalf("%v", d)
		}
		return s.guard.Deny(r, d)
	}
	many(5, func(int) int { return s.wrong("203.0.113.1", "alice") })
	over, bad := denial(form("203.0.113.1", "alice")), denial(form("203.0.113.1", ""))
	store.gone.Store(true)
	failed := denial(form("203.0.113.1", "alice"))
	for _, row := range []struct {
		got    core.Denial
		status int
		text   string
	}{{over, 429, "Too many attempts to log in. Try again later."}, {bad, 400, `the field \"username\" is missing or empty`}, {failed, 503, "Try again later."}} {
		body := string(row.got.Body)
		if row.got.Status != row.status || !strings.Contains(body, fmt.Sprintf(`"status":%d,`, row.status)) || !strings.Contains(body, row.text) {
			t.Errorf("%d, want %d: %s", row.got.Status, row.status, body)
		}
	}
}

// A denial cache does not hide the other limits.
func TestStatusOfADeniedAccountHasAllLimits(t *testing.T) {
	s, _ := newInstances(t, redistest.Start(t).Addr, login.Config{})
	many(8, func(int) int { return s.wrong("203.0.113.1", "alice") })
	st, err := s.guard.Status(context.Background(), "alice", "203.0.113.1")
	if err != nil || !st.AddressAccount.Denied || st.Account.Limit.Quota != 100 || st.Address.Limit.Quota != 20 || st.Account.Remaining != 95 {
		t.Errorf("%+v, %v", st, err)
	}
}
