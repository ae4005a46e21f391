package login_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/login"
)

// The figures in the package comment. The tests guess every four seconds, where guesses
// every second would get no further; the test of 1000 accounts guesses every second.
func TestADayOfGuessing(t *testing.T) {
	const second = time.Second
	stolen := func(n int, forget bool) func(s *site) {
		return func(s *site) {
			for range n {
				s.cookies = append(s.cookies, s.cookieOf("alice"))
			}
			if forget {
				if err := s.guard.Forget(context.Background(), "alice"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	basic := login.Config{Sources: []core.KeyFunc{login.BasicUser()}, Methods: []string{"GET"}, Attempts: core.PerMinute(1000)}
	ownerFirst := func(s *site, guesses func()) int { // at the same address
		if s.serve(basicGet("Basic YWxpY2U6eA=="), http.StatusOK) == http.StatusOK {
			s.reached.Add(-1) // no guess
		}
		guesses()
		return 0
	}
	for _, row := range []struct {
		name  string
		c     login.Config
		begin func(s *site)            // nil: nothing
		guess func(s *site, i int) int // the i-th second's
		steps int
		step  time.Duration
		want  int64 // guesses that reach the handler in 24 hours
	}{
		{"one address, one account", login.Config{}, nil, func(s *site, _ int) int { return s.wrong("203.0.113.1", "alice") }, 21_600, 4 * second, 150},
		{"one address, 1000 accounts", login.Config{}, nil, func(s *site, i int) int { return s.wrong("203.0.113.1", fmt.Sprint("u", i%1000)) }, 86_400, second, 28_800},
		{"1000 addresses, one account", login.Config{}, nil, func(s *site, i int) int { return s.wrong(ip(i%1000), "alice") }, 21_600, 4 * second, 2_300},
		{"one address that logs in to its own account in between", login.Config{}, nil, func(s *site, i int) int {
			if i%2 == 0 {
				if s.right("203.0.113.1", "mallory") == http.StatusOK {
					s.reached.Add(-1) // no guess
				}
			}
			return s.wrong("203.0.113.1", "alice")
		}, 21_600, 4 * second, 150},
		{"one address that gives up every fifth request before it is answered", login.Config{}, nil, func(s *site, i int) int {
			if i%5 == 4 {
				return s.cancel("203.0.113.1", "alice")
			}
			return s.wrong("203.0.113.1", "alice")
		}, 21_600, 4 * second, 150},
		{"one address that asks for the page of the form with a body in between", login.Config{}, nil, func(s *site, i int) int {
			if i%5 == 4 {
				page := form("203.0.113.1", "alice")
				page.method = []string{http.MethodGet, http.MethodHead, http.MethodOptions}[i%3]
				if s.serve(page, http.StatusOK) == http.StatusOK {
					s.reached.Add(-1) // no guess
				}
				return http.StatusOK
			}
			return s.wrong("203.0.113.1", "alice")
		}, 21_600, 4 * second, 150},
		{"one address and a stolen cookie", login.Config{}, stolen(1, false), func(s *site, _ int) int {
			return s.serve(with(s.cookies[0], "203.0.113.1", "alice"), http.StatusUnauthorized)
		}, 21_600, 4 * second, 270},
		{"1000 addresses, each with a stolen cookie", login.Config{}, stolen(1000, false), func(s *site, i int) int {
			return s.serve(with(s.cookies[i%1000], ip(i%1000), "alice"), http.StatusUnauthorized)
		}, 21_600, 4 * second, 3_450},
		{"1000 addresses that are known for the account", login.Config{}, func(s *site) {
			for i := range 1000 {
				s.right(ip(i), "alice")
			}
		}, func(s *site, i int) int { return s.wrong(ip(i%1000), "alice") }, 21_600, 4 * second, 3_450},
		{"one address and a stolen cookie, after Forget", login.Config{}, stolen(1, true), func(s *site, _ int) int {
			return s.serve(with(s.cookies[0], "203.0.113.1", "alice"), http.StatusUnauthorized)
		}, 21_600, 4 * second, 150},
		{"1000 addresses, each with a stolen cookie, after Forget", login.Config{}, stolen(1000, true), func(s *site, i int) int {
			return s.serve(with(s.cookies[i%1000], ip(i%1000), "alice"), http.StatusUnauthorized)
		}, 21_600, 4 * second, 2_300},
		{"Basic authentication, 30 at once", basic, nil, func(s *site, _ int) int {
			s.atOnce(30, http.StatusUnauthorized, 0)
			return 0
		}, 2_880, 30 * second, 150},
		{"the owner's address, after each of the owner's logins", basic, nil, func(s *site, _ int) int {
			return ownerFirst(s, func() {
				many(30, func(int) int { return s.serve(basicGet("Basic YWxpY2U6eA=="), http.StatusUnauthorized) })
			})
		}, 144, 600 * second, 720},
		{"the same, 30 at once", basic, nil, func(s *site, _ int) int {
			return ownerFirst(s, func() {
				synctest.Test(s.t, func(*testing.T) { s.atOnce(30, http.StatusUnauthorized, second) })
			})
		}, 144, 600 * second, 1_440},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.c.Secrets = [][]byte{secret}
			s := newSite(t, row.c)
			if row.begin != nil {
				row.begin(s)
				s.clock.Advance(time.Hour)
				s.reached.Store(0)
			}
			for i := range row.steps {
				row.guess(s, i)
				s.clock.Advance(row.step)
			}
			if got := s.reached.Load(); got != row.want {
				t.Errorf("%d guesses of a day reach the handler, want %d", got, row.want)
			}
		})
	}
}

// Whatever an attacker does, a wait ends when RetryAfter said, and attempts during the wait
// do not make it longer.
func TestRetryAfterIsExactAndAttemptsDoNotExtendIt(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := &site{t: t, clock: storetest.NewClock(time.Unix(1_764_000_000, 0))}
		guard, err := login.NewGuard(login.Config{Field: "username", Clock: s.clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer guard.Close() //nolint:errcheck // never fails without a shared store
		s.guard = guard
		for range rapid.IntRange(1, 60).Draw(r, "rounds") {
			s.clock.Advance(time.Duration(rapid.Int64Range(0, int64(30*time.Minute)).Draw(r, "idle")).Truncate(time.Microsecond))
			if s.wrong("203.0.113.1", "alice") == http.StatusUnauthorized {
				continue
			}
			wait := guard.Check(form("203.0.113.1", "alice")).RetryAfter
			if wait <= 0 || wait > time.Hour {
				r.Fatalf("a wait of %v", wait)
			}
			part := time.Duration(rapid.Int64Range(0, int64(wait)-1).Draw(r, "part")).Truncate(time.Microsecond)
			s.clock.Advance(part)
			if s.wrong("203.0.113.1", "alice") != http.StatusTooManyRequests {
				r.Fatalf("allowed %v before the end of a wait", wait-part)
			}
			if left := guard.Check(form("203.0.113.1", "alice")).RetryAfter; left != wait-part {
				r.Fatalf("%v left of %v after %v", left, wait, part)
			}
			s.clock.Advance(wait - part)
			if s.wrong("203.0.113.1", "alice") != http.StatusUnauthorized {
				r.Fatal("denied when the wait is over")
			}
		}
	})
}
