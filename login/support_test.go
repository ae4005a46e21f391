package login_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

func TestStatusAndUnblock(t *testing.T) {
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
	for range 2 { // again and again
		if err := s.guard.Unblock(ctx, "Alice"); err != nil {
			t.Fatal(err)
		}
		s.clock.Advance(time.Second) // as another instance may need
		s.want(many(6, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:1]")
		s.want(many(1, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[429:1]")
		if st, err := s.guard.Status(ctx, "alice", "203.0.113.1"); err != nil || !st.AddressAccount.Denied || st.AddressAccount.Remaining != 0 {
			t.Errorf("after the address has used up its pardon: %+v, %v", st, err)
		}
	}
}

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

// Each Unblock lasts its whole time and resets the failures of each address once, whenever
// the account was unblocked before.
func TestEachUnblockResetsEachAddressOnce(t *testing.T) {
	failures := login.DefaultFailures
	failures.Lockout = core.Lockout{First: time.Hour, Factor: 1}
	ctx := context.Background()
	for _, between := range []time.Duration{0, time.Minute, 59 * time.Minute, 61 * time.Minute, 2 * time.Hour, 366 * 24 * time.Hour} {
		for _, later := range []time.Duration{0, 2 * time.Minute, 59 * time.Minute} {
			s := newSite(t, login.Config{Failures: failures, AccountFailures: core.PerHour(100_000)})
			fail := func(n int, want string) {
				t.Helper()
				s.want(many(n, func(int) int { return s.wrong("203.0.113.1", "alice") }), want)
			}
			unblock := func() {
				t.Helper()
				if err := s.guard.Unblock(ctx, "alice"); err != nil {
					t.Fatal(err)
				}
				if st, err := s.guard.Status(ctx, "alice", "203.0.113.1"); err != nil || st.RetryAfter != 0 || st.AddressAccount.Remaining != 5 {
					t.Errorf("after Unblock: %+v, %v", st, err)
				}
			}
			fail(6, "map[401:5 429:1]")
			unblock()
			s.clock.Advance(later) // while the first unblocking lasts, the address is pardoned,
			fail(6, "map[401:5 429:1]")
			s.clock.Advance(between) // then there is another
			many(6, func(int) int { return s.wrong("203.0.113.1", "alice") })
			unblock()
			s.clock.Advance(min(later, 50*time.Second)) // no other request asks meanwhile
			fail(6, "map[401:5 429:1]")

			s.clock.Advance(2 * time.Hour)
			unblock() // of use to nobody
			s.clock.Advance(between)
			fail(5, "map[401:5]")
			unblock()
			s.clock.Advance(later)
			fail(1, "map[401:1]")
		}
	}
}

// An Unblock that lasts for a month is told apart from the one of the month before.
func TestAnUnblockOfAMonthResetsAnAddressThatTheOneBeforeHasReset(t *testing.T) {
	const day = 24 * time.Hour
	s := newSite(t, login.Config{Failures: core.Limit{Quota: 1, Window: 30 * day, Algorithm: core.FixedWindow}, AccountFailures: core.PerHour(100_000)})
	unblock := func() {
		t.Helper()
		if err := s.guard.Unblock(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
	}
	s.want(many(2, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:1 429:1]")
	unblock()
	s.clock.Advance(27 * day)
	s.want(many(2, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:1 429:1]")
	s.clock.Advance(2 * day)
	unblock()
	s.want(many(2, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:1 429:1]")
}

func TestStatusRejectsATextThatIsNoAddress(t *testing.T) {
	s := newSite(t, login.Config{})
	for _, address := range []string{"", "nonsense", "203.0.113.1:80", "10.0.0.0/8"} {
		if st, err := s.guard.Status(context.Background(), "alice", address); err == nil {
			t.Errorf("%q: %+v", address, st)
		}
	}
}
