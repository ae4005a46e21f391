package login_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

func TestOnSuspicion(t *testing.T) {
	var seen []login.Suspicion
	var denial *core.Denial
	s := newSite(t, login.Config{
		AccountFailures: core.PerHour(10),
		OnSuspicion: func(r core.Request, sus login.Suspicion) *core.Denial {
			if r.Method() != http.MethodPost {
				t.Errorf("%v", r)
			}
			seen = append(seen, sus)
			return denial
		},
	})
	s.flood(7, "alice")
	if len(seen) != 2 || seen[0] != (login.Suspicion{Suspicious: true, Username: "alice", Failures: 5, Limit: 10}) || seen[1].Failures != 6 {
		t.Errorf("asked about %+v, want 5 and 6 failures", seen)
	}
	// The handler sees it too.
	r := form(ip(50), "alice")
	d := s.guard.Check(r)
	if got := login.SuspicionOf(d); !got.Suspicious || got.Failures != 7 {
		t.Errorf("the handler sees %+v", got)
	}
	s.guard.Settle(r, d, core.Outcome{Status: 200})
	s.guard.Settle(r, core.Decision{}, core.Outcome{Status: 401}) // a decision of another checker
	if got := login.SuspicionOf(core.Decision{}); got.Suspicious {
		t.Error("suspicion of nothing")
	}
	// A denial is the application's, and costs the account nothing.
	denial = &core.Denial{Status: 403, Body: []byte("captcha")}
	for i := range 30 {
		r := form(ip(60+i), "alice")
		d := s.guard.Check(r)
		if d.Allowed || d.Reason != core.ReasonOverLimit || string(s.guard.Deny(r, d).Body) != "captcha" {
			t.Fatalf("%+v", d)
		}
		for _, h := range d.AppendHeaders(nil) {
			if h.Name == "Retry-After" {
				t.Error("a captcha is not asked for later")
			}
		}
	}
	if e := s.last.Load(); e.Kind != login.EventDenied || e.Rule != "" || e.RetryAfter != 0 {
		t.Errorf("%+v", e)
	}
	denial = nil
	if got := s.wrong(ip(99), "alice"); got != 401 {
		t.Errorf("denied attempts were counted: %d", got)
	}
}

// OnSuspicion is not called for a known address and for a device cookie, also while
// strangers are not denied yet.
func TestATrustedClientIsNotSuspected(t *testing.T) {
	asked := 0
	s := newSite(t, login.Config{
		AccountFailures: core.PerHour(10), Secrets: [][]byte{secret},
		OnSuspicion: func(core.Request, login.Suspicion) *core.Denial {
			asked++
			return &core.Denial{Status: http.StatusForbidden}
		},
	})
	s.right(ip(50), "alice")
	s.flood(6, "alice")
	if asked != 1 {
		t.Fatalf("asked %d times about strangers, want 1", asked)
	}
	d := s.guard.Check(form(ip(50), "alice"))
	if !d.Allowed || login.SuspicionOf(d) != (login.Suspicion{}) {
		t.Errorf("a known address: %v, %+v", d, login.SuspicionOf(d))
	}
	if got := s.trust(s.cookieOf("alice"), "alice"); got != "device" || asked != 1 {
		t.Errorf("a device cookie is trusted by %q, asked %d times about trusted clients", got, asked-1)
	}
}

// The attempts of a client that ignores captchas are charged to its address.
func TestTheLimitOfTheAddressLimitsCallsOfOnSuspicion(t *testing.T) {
	asked := 0
	s := newSite(t, login.Config{AccountFailures: core.PerHour(10), OnSuspicion: func(core.Request, login.Suspicion) *core.Denial {
		asked++
		return &core.Denial{} // no status
	}})
	s.flood(3, "alice")
	s.want(s.wrongs(102, "203.0.113.7", "alice"), "map[401:2 429:100]")
	if st := s.status("alice", "203.0.113.7"); asked != 18 || st.AddressAccount.Remaining != 3 || st.Account.Remaining != 5 {
		t.Errorf("asked %d times by one address, want 18; %+v", asked, st)
	}
}

// By default, an account is suspicious from half of the quota on, rounded up: of the burst, if there is one.
func TestWhenSuspicionBegins(t *testing.T) {
	bucket := func(burst int64) core.Limit {
		return core.Limit{Quota: 100, Window: time.Hour, Algorithm: core.TokenBucket, Burst: burst}
	}
	for _, row := range []struct {
		limit       core.Limit
		after, want int64
	}{{core.PerHour(10), 0, 5}, {core.PerHour(9), 0, 5}, {core.PerHour(2), 0, 1}, {core.PerHour(10), 1, 1}, {bucket(10), 0, 5}, {bucket(200), 1, 1}} {
		first := int64(-1)
		s := newSite(t, login.Config{AccountFailures: row.limit, SuspiciousAfter: row.after, OnSuspicion: func(_ core.Request, sus login.Suspicion) *core.Denial {
			if first < 0 {
				first = sus.Failures
			}
			return nil
		}})
		if s.flood(12, "alice"); first != row.want {
			t.Errorf("%+v: suspicious from %d on", row, first)
		}
	}
}
