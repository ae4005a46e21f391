package login_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// trustModel knows what a guard should trust: what was given after the
// account's last Forget and has not expired.
type trustModel struct {
	given   []given
	forgets map[string][]time.Time
}

type given struct {
	account string
	at      time.Time
	cookie  string // "" for a known address
	address string
}

// Logins, password changes and waits over years, through three instances. Trust from before
// a Forget has ended. Trust from after the last Forget holds until it expires.
func TestForgetAgreesWithAModel(t *testing.T) {
	const (
		day     = 24 * time.Hour
		counted = 360 * day // for so long a Forget is in the account's counter at least,
		atMost  = 372 * day // and no longer than this
	)
	rapid.Check(t, func(r *rapid.T) {
		cookieFor := time.Duration(rapid.SampledFrom([]int{1, 90, 350}).Draw(r, "cookieFor")) * day
		knownFor := time.Duration(rapid.SampledFrom([]int{1, 14, 350}).Draw(r, "knownFor")) * day
		clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
		store := newShared(t, core.MemoryConfig{Clock: clock.Now})
		var e trusts
		var sites []*site
		for range 3 {
			s := &site{t: t, clock: clock}
			guard, err := login.NewGuard(login.Config{
				Field: "username", Clock: clock.Now, Store: store, Secrets: [][]byte{secret}, OnEvent: e.event,
				CookieFor: cookieFor, KnownFor: knownFor, Attempts: core.PerMinute(core.MaxQuota),
				Resilience: resilient.Config{Timeout: time.Minute},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer guard.Close() //nolint:errcheck // never fails without a shared store
			s.guard = guard
			sites = append(sites, s)
		}
		m := trustModel{forgets: map[string][]time.Time{}}
		pick := func() *site { return rapid.SampledFrom(sites).Draw(r, "instance") }
		account := func() string { return rapid.SampledFrom([]string{"alice", "bob"}).Draw(r, "account") }
		n := 0
		r.Repeat(map[string]func(*rapid.T){
			"give a cookie": func(*rapid.T) {
				a := account()
				m.given = append(m.given, given{account: a, at: clock.Now(), cookie: pick().cookieOf(a)})
			},
			"log in": func(*rapid.T) {
				n++
				a, address := account(), fmt.Sprintf("192.0.2.%d", n%250+1)
				for i := range m.given { // its time begins anew
					if m.given[i].address == address && m.given[i].account == a {
						m.given[i].at = time.Time{}
					}
				}
				pick().right(address, a)
				m.given = append(m.given, given{account: a, at: clock.Now(), address: address})
			},
			"forget": func(r *rapid.T) {
				a := account()
				if err := pick().guard.Forget(context.Background(), a); err != nil {
					r.Fatal(err)
				}
				m.forgets[a] = append(m.forgets[a], clock.Now())
				clock.Advance(time.Microsecond) // the model has no order within one instant
			},
			"wait": func(r *rapid.T) {
				clock.Advance(time.Duration(rapid.SampledFrom([]int64{
					int64(time.Second), int64(day), int64(13 * day), int64(89 * day), int64(90 * day), int64(349 * day), int64(359 * day), int64(373 * day),
				}).Draw(r, "wait")))
			},
			"": func(r *rapid.T) {
				if len(m.given) == 0 {
					return
				}
				g := rapid.SampledFrom(m.given).Draw(r, "given")
				s, now := pick(), clock.Now()
				var trusted bool
				valid := knownFor
				if g.cookie != "" {
					valid = cookieFor
					n++
					s.serve(with(g.cookie, ip(n), g.account), http.StatusOK)
					trusted = e.last.Trust == "device"
				} else {
					st, err := s.guard.Status(context.Background(), g.account, g.address)
					if err != nil {
						r.Fatal(err)
					}
					trusted = st.KnownAddress
				}
				if g.at.IsZero() {
					return
				}
				forgotten, lapsed, counts := false, false, false
				for _, f := range m.forgets[g.account] {
					forgotten = forgotten || !f.Before(g.at)
					lapsed = lapsed || now.Sub(f) >= counted && g.at.Sub(f) < atMost
					counts = counts || now.Sub(f) < atMost
				}
				switch want := now.Sub(g.at) < valid-time.Second && !forgotten; {
				case trusted && (forgotten || now.Sub(g.at) > valid+time.Second):
					r.Fatalf("trusted, and should not be: %+v", g)
				case !trusted && want && !(lapsed && (counts || g.cookie == "")):
					// The exception: a Forget has left the counter since.
					r.Fatalf("not trusted, and should be: %+v", g)
				}
			},
		})
	})
}
