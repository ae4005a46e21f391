package login_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
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

func TestConcurrentGuessesGetNoMoreThanTheQuota(t *testing.T) {
	s := newSite(t, login.Config{Attempts: core.PerMinute(1000)})
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() { s.wrong("203.0.113.1", "alice") })
	}
	wg.Wait()
	if n := s.reached.Load(); n != 5 {
		t.Errorf("%d guesses reached the handler, want 5", n)
	}
}

func TestASuccessResetsTheFailuresOfItsAddressAndAccountOnly(t *testing.T) {
	s := newSite(t, login.Config{})
	for range 4 {
		s.wrong("203.0.113.1", "alice")
		s.wrong("203.0.113.2", "alice")
	}
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[200:1]")
	s.want(many(6, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:1]")
	s.want(many(2, func(int) int { return s.wrong("203.0.113.2", "alice") }), "map[401:1 429:1]")

	got := many(60, func(i int) int {
		if i%20 == 19 {
			return s.right("203.0.113.9", "mallory")
		}
		return s.wrong("203.0.113.9", fmt.Sprint("victim", i))
	})
	s.want(got, "map[200:1 401:19 429:40]")
}

func TestWaitsDoubleUpToAnHour(t *testing.T) {
	s := newSite(t, login.Config{AccountFailures: core.PerHour(1000)})
	for _, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour} {
		s.want(many(5, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5]")
		for range 10 {
			if got := s.wrong("203.0.113.1", "alice"); got != http.StatusTooManyRequests {
				t.Fatalf("during the wait: %d", got)
			}
		}
		d := s.guard.Check(form("203.0.113.1", "alice"))
		if d.RetryAfter != want {
			t.Fatalf("wait of %v, want %v", d.RetryAfter, want)
		}
		s.clock.Advance(want)
	}
	s.clock.Advance(24 * time.Hour)
	many(5, func(int) int { return s.wrong("203.0.113.1", "alice") })
	if d := s.guard.Check(form("203.0.113.1", "alice")); d.RetryAfter != 30*time.Second {
		t.Errorf("a day later: %v", d.RetryAfter)
	}
}

// Two pairs of address and account have two counters, also if their texts are equal when
// they are joined.
func TestDifferentAddressesAndAccountsDoNotShareCounters(t *testing.T) {
	s := newSite(t, login.Config{ClientIP: keyfuncs.Header("X-Client"), Attempts: core.PerMinute(1000)})
	attempt := func(client, user string, status int) int {
		r := form("203.0.113.1", user)
		r.header.Set("X-Client", client)
		return s.serve(r, status)
	}
	pairs := [][2]string{{"ab", "c"}, {"a", "bc"}, {"2001:db8::1", "bob"}, {"2001:db8::", "1bob"}, {"1", "0:x"}, {"10", ":x"}, {"\x01a", "b"}, {"a\x01", "b"}}
	for _, p := range pairs {
		s.want(many(7, func(int) int { return attempt(p[0], p[1], http.StatusUnauthorized) }), "map[401:5 429:2]")
	}
	// So is what is known of them.
	known := newSite(t, login.Config{ClientIP: keyfuncs.Header("X-Client"), AccountFailures: core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow}})
	s = known
	attempt("ab", "c", http.StatusOK)
	for _, user := range []string{"c", "bc"} {
		attempt("x", user, http.StatusUnauthorized)
	}
	if a, b := attempt("ab", "c", http.StatusOK), attempt("a", "bc", http.StatusOK); a != http.StatusOK || b != http.StatusTooManyRequests {
		t.Errorf("the known address: %d, another with another account: %d", a, b)
	}
}

func TestOneAccountIsLimitedOverAllAddresses(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}})
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[200:1]")
	const guesses = 3000
	var reached []time.Time
	for i := range guesses {
		if s.wrong(ip(i), "alice") == http.StatusUnauthorized {
			reached = append(reached, s.clock.Now())
		}
		if i%500 == 499 {
			if got := s.right("192.0.2.1", "alice"); got != http.StatusOK {
				t.Errorf("the owner, at home, after %d guesses: %d", i, got)
			}
			if got := s.serve(s.withCookie(form("192.0.2.77", "alice"), "Alice "), http.StatusOK); got != http.StatusOK {
				t.Errorf("the owner, with a cookie, after %d guesses: %d", i, got)
			}
			if got := s.right("192.0.2.99", "alice"); got != http.StatusTooManyRequests {
				t.Errorf("a stranger, after %d guesses: %d", i, got)
			}
		}
		s.clock.Advance(3 * time.Second)
	}
	for i, from := range reached {
		n := 0
		for _, at := range reached[i:] {
			if at.Sub(from) < time.Hour {
				n++
			}
		}
		if n > 100 {
			t.Fatalf("%d guesses in one hour", n)
		}
	}
	if n := len(reached); n < 200 {
		t.Errorf("%d guesses in two and a half hours: the account is never free again", n)
	}
}

// A damaged counter denies its key, whatever the store itself does with damaged counters.
func TestDamagedCountersDenyAttempts(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	s := newSiteAt(t, clock, login.Config{
		Store:      redisstore.New(client, redisstore.Clock(clock.Now), redisstore.Timeout(20*time.Second), redisstore.WithoutDenialCache()),
		Resilience: resilient.Config{Timeout: 20 * time.Second},
	})
	s.want(many(8, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:3]")
	damaged := 0
	for _, name := range client.Keys(t.Context(), "fg1:login:*").Val() {
		if !strings.HasPrefix(name, "fg1:login-memory:") {
			client.Set(t.Context(), name, "nonsense", redis.KeepTTL)
			damaged++
		}
	}
	if damaged < 3 {
		t.Fatalf("%d counters", damaged)
	}
	s.want(many(20, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[429:20]")
	clock.Advance(time.Hour + time.Second) // the guard works on
	s.want(many(1, func(int) int { return s.wrong("203.0.113.2", "bob") }), "map[401:1]")
}

func BenchmarkGuard(b *testing.B) {
	g := core.Must(login.NewGuard(login.Config{Field: "username", Secrets: [][]byte{secret}, Attempts: core.PerMinute(core.MaxQuota), Failures: core.Limit{Quota: core.MaxQuota, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Second}}, AccountFailures: core.PerHour(core.MaxQuota)}))
	defer g.Close() //nolint:errcheck // of no interest any more
	r := form("203.0.113.1", "alice")
	field := keyfuncs.PostField("username", keyfuncs.Normalize(func(s string) (string, error) { return login.Normalize(s), nil }))
	b.Run("the field alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = field(nil, r)
		}
	})
	for name, status := range map[string]int{"a failure": 401, "a success": 200} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := g.Check(r)
				g.Settle(r, d, core.Outcome{Status: status})
			}
		})
	}
}
