package login_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

// The figures in the comment of Guard. The tests guess every four seconds, where guesses
// every second would get no further; the test of 1000 accounts guesses every second.
func TestADayOfGuessing(t *testing.T) {
	const second = time.Second
	stolen := func(n int, forget bool) func(s *site) {
		return func(s *site) {
			for range n {
				s.cookies = append(s.cookies, s.cookieOf("alice"))
			}
			if forget {
				s.must(s.guard.Forget(context.Background(), "alice"))
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
		}, 144, 600 * second, 720},
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

func TestASuccessResetsTheFailuresOfItsAddressAndAccountOnly(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}})
	cookie := s.cookieOf("carol") // a success resets the failures of a device cookie too
	s.want(many(14, func(i int) int {
		return s.serve(with(cookie, "203.0.113.3", "carol"), []int{401, 401, 401, 500, 500, 401, 200}[i%7])
	}), "map[200:2 401:8 500:4]")
	if s.last.Load().Trust != "device" {
		t.Errorf("%+v", s.last.Load())
	}
	s.wrongs(4, "203.0.113.1", "alice")
	s.wrongs(4, "203.0.113.2", "alice")
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[200:1]")
	s.want(s.wrongs(6, "203.0.113.1", "alice"), "map[401:5 429:1]")
	s.want(s.wrongs(2, "203.0.113.2", "alice"), "map[401:1 429:1]")
	s.wrongs(4, "203.0.113.4", "dora")
	s.clock.Advance(15 * time.Minute)
	s.want(s.wrongs(5, "203.0.113.4", "dora"), "map[401:5]")
	// The attempts of the address stay.
	s.want(many(60, func(i int) int {
		if i%20 == 19 {
			return s.right("203.0.113.9", "mallory")
		}
		return s.wrong("203.0.113.9", fmt.Sprint("victim", i))
	}), "map[200:1 401:19 429:40]")
}

// Attempts during a wait do not make it longer.
func TestWaitsDoubleUpToAnHour(t *testing.T) {
	s := newSite(t, login.Config{AccountFailures: core.PerHour(1000)})
	for _, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour} {
		s.want(s.wrongs(15, "203.0.113.1", "alice"), "map[401:5 429:10]")
		if d := s.guard.Check(form("203.0.113.1", "alice")); d.RetryAfter != want {
			t.Fatalf("wait of %v, want %v", d.RetryAfter, want)
		}
		s.clock.Advance(want)
	}
	// Each hour without a wait forgets one of the eight waits up to the first that is an hour long.
	for _, row := range [][2]time.Duration{{2*time.Hour - 1, time.Hour}, {2 * time.Hour, 32 * time.Minute}, {24 * time.Hour, 30 * time.Second}} {
		s.clock.Advance(row[0])
		s.wrongs(5, "203.0.113.1", "alice")
		if d := s.guard.Check(form("203.0.113.1", "alice")); d.RetryAfter != row[1] {
			t.Errorf("%v later: %v, want %v", row[0], d.RetryAfter, row[1])
		}
		s.clock.Advance(row[1])
	}
}

// Two pairs of address and account have two counters, also if their texts are equal when
// they are joined. So is what is known of them.
func TestDifferentAddressesAndAccountsDoNotShareCounters(t *testing.T) {
	s := newSite(t, login.Config{ClientIP: keyfuncs.Header("X-Client"), Attempts: core.PerMinute(1000)})
	from := func(client, user string) *request {
		r := form("203.0.113.1", user)
		if client != "" {
			r.header.Set("X-Client", client)
		}
		return r
	}
	for _, p := range [][2]string{{"ab", "c"}, {"a", "bc"}, {"2001:db8::1", "bob"}, {"2001:db8::", "1bob"}, {"\x01a", "b"}, {"a\x01", "b"}} {
		s.want(many(7, func(int) int { return s.serve(from(p[0], p[1]), http.StatusUnauthorized) }), "map[401:5 429:2]")
	}
	s = newSite(t, login.Config{ClientIP: keyfuncs.Header("X-Client"), AccountFailures: core.PerHour(1)})
	for _, client := range []string{"ab", ""} {
		s.serve(from(client, "c"), http.StatusOK)
	}
	for _, user := range []string{"c", "bc"} {
		s.serve(from("x", user), http.StatusUnauthorized)
	}
	// The last client has no address: all such clients would be known.
	for p, want := range map[[2]string]int{{"ab", "c"}: 200, {"a", "bc"}: 429, {"", "c"}: 429} {
		if got := s.serve(from(p[0], p[1]), http.StatusOK); got != want {
			t.Errorf("%q: %d, want %d", p, got, want)
		}
	}
}

// While strangers are denied, the owner gets in at home and with a cookie.
func TestOneAccountIsLimitedOverAllAddresses(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}})
	s.right("192.0.2.1", "alice")
	s.want(s.flood(500, "alice"), "map[401:100 429:400]")
	for name, row := range map[string]struct {
		r    *request
		want int
	}{
		"at home": {form("192.0.2.1", "alice"), 200}, "with a cookie": {with(s.cookieOf("alice"), "192.0.2.77", "Alice "), 200},
		"a stranger": {form("192.0.2.99", "alice"), 429}, "another account": {form("192.0.2.99", "bob"), 200},
	} {
		if got := s.serve(row.r, http.StatusOK); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

// A damaged counter denies its key, whatever the store itself does with damaged counters. If the
// counter of Forgets cannot be read, no client is trusted.
func TestDamagedCounters(t *testing.T) {
	server := redistest.Start(t)
	s, _ := newInstances(t, server.Addr, login.Config{Secrets: [][]byte{secret}})
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close() //nolint:errcheck // of no interest any more
	damage := func(pattern string, least int) {
		t.Helper()
		names := client.Keys(t.Context(), pattern).Val()
		for _, name := range names {
			client.Set(t.Context(), name, "nonsense", redis.KeepTTL)
		}
		if len(names) < least {
			t.Fatalf("%d counters", len(names))
		}
	}
	s.must(s.guard.Forget(t.Context(), "alice"))
	cookie := s.cookieOf("alice")
	s.right("192.0.2.1", "alice")
	damage("fg1:login-memory:forgotten*", 1)
	if got := s.trust(cookie, "alice"); got != "" {
		t.Errorf("trusted by %q", got)
	}
	s.wantKnown("192.0.2.1", "alice", false)
	s.must(s.guard.Forget(t.Context(), "alice"))

	s.want(s.wrongs(4, "203.0.113.1", "alice"), "map[401:4]")
	damage("fg1:login:*", 3)
	s.want(s.wrongs(20, "203.0.113.1", "alice"), "map[429:20]")
	s.clock.Advance(time.Hour + time.Second) // the guard works on
	s.want(s.wrongs(1, "203.0.113.2", "bob"), "map[401:1]")
}
