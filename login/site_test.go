package login_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/login"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type request struct {
	ctx    context.Context
	method string
	peer   string
	header http.Header
	query  string
	body   string
}

func (r *request) Context() context.Context          { return r.ctx }
func (r *request) Method() string                    { return r.method }
func (r *request) Path() string                      { return "/login" }
func (r *request) EscapedPath() string               { return "/login" }
func (r *request) PathValue(string) string           { return "" }
func (r *request) RawQuery() string                  { return r.query }
func (r *request) Route() string                     { return "/login" }
func (r *request) RemoteAddr() string                { return r.peer + ":4711" }
func (r *request) HeaderValues(name string) []string { return r.header.Values(name) }
func (r *request) Query(string) (string, bool)       { return "", false }
func (r *request) Value(any) any                     { return nil }

func (r *request) Cookie(name string) (string, bool) {
	for _, c := range (&http.Request{Header: r.header}).Cookies() {
		if c.Name == name {
			return c.Value, true
		}
	}
	return "", false
}

func (r *request) Body(n int) ([]byte, error) { return []byte(r.body[:min(n, len(r.body))]), nil }

func form(ip, user string) *request {
	return &request{
		ctx: context.Background(), method: http.MethodPost, peer: ip,
		header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		body:   url.Values{"username": {user}, "password": {"x"}}.Encode(),
	}
}

// basicGet is a GET request with Basic authentication and without a body.
func basicGet(authorization string) *request {
	return &request{ctx: context.Background(), method: http.MethodGet, peer: "203.0.113.1", header: http.Header{"Authorization": {authorization}}}
}

// with is an attempt with a Cookie header.
func with(cookie, ip, user string) *request {
	r := form(ip, user)
	r.header.Set("Cookie", cookie)
	return r
}

type site struct {
	t       *testing.T
	clock   *storetest.Clock
	guard   *login.Guard
	reached atomic.Int64 // attempts that have reached the handler
	cookies []string     // that an attacker has
	last    atomic.Pointer[login.Event]
	fresh   int // addresses that trust has used
}

var secret = []byte(strings.Repeat("s", 32))

func newSite(t *testing.T, c login.Config) *site {
	t.Helper()
	return newSiteAt(t, storetest.NewClock(time.Unix(1_764_000_000, 0)), c)
}

func newSiteAt(t *testing.T, clock *storetest.Clock, c login.Config) *site {
	t.Helper()
	s := &site{t: t, clock: clock}
	c.Clock = s.clock.Now
	if c.Field == "" && c.Sources == nil {
		c.Field = "username"
	}
	onEvent := c.OnEvent
	c.OnEvent = func(e login.Event) {
		s.last.Store(&e)
		if onEvent != nil {
			onEvent(e)
		}
	}
	s.guard = core.Must(login.NewGuard(c))
	t.Cleanup(func() { s.must(s.guard.Close()) })
	return s
}

// newInstances returns two sites that share a Redis, each with a client, a
// store and a denial cache of its own, and one clock.
func newInstances(t *testing.T, addr string, c login.Config) (a, b *site) {
	t.Helper()
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	instance := func() *site {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		c.Store = redisstore.New(client, redisstore.Clock(clock.Now), redisstore.Timeout(10*time.Second), redisstore.AnotherInstance())
		c.Resilience = resilient.Config{Timeout: 20 * time.Second}
		return newSiteAt(t, clock, c)
	}
	return instance(), instance()
}

func (s *site) serve(r *request, status int) int {
	d := s.guard.Check(r)
	if !d.Allowed {
		return s.guard.Deny(r, d).Status
	}
	s.reached.Add(1)
	if d.NeedsOutcome() {
		s.guard.Settle(r, d, core.Outcome{Status: status, Canceled: status == core.StatusCanceled})
	}
	return status
}

// wrong and right are one attempt, with its status.
func (s *site) wrong(ip, user string) int { return s.serve(form(ip, user), http.StatusUnauthorized) }
func (s *site) right(ip, user string) int { return s.serve(form(ip, user), http.StatusOK) }

// wrongs are n wrong passwords from one address; flood is one from each of n addresses.
func (s *site) wrongs(n int, ip, user string) string {
	return many(n, func(int) int { return s.wrong(ip, user) })
}

func (s *site) flood(n int, user string) string {
	return many(n, func(i int) int { return s.wrong(ip(i), user) })
}

// cancel is an attempt whose client goes away while the handler works.
func (s *site) cancel(ip, user string) int { return s.serve(form(ip, user), core.StatusCanceled) }

// begin is an attempt that the handler begins to judge; end is called with the
// status of its answer.
func (s *site) begin(r *request) (end func(status int)) {
	s.t.Helper()
	d := s.guard.Check(r)
	if !d.Allowed {
		s.t.Fatalf("denied: %v", d)
	}
	return func(status int) { s.guard.Settle(r, d, core.Outcome{Status: status}) }
}

// atOnce are n requests with Basic authentication, which a handler judges at the same time.
func (s *site) atOnce(n, status int, takes time.Duration) string {
	got := make([]int, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r := basicGet("Basic YWxpY2U6eA==")
			d := s.guard.Check(r)
			if got[i] = http.StatusTooManyRequests; d.Allowed {
				s.reached.Add(1)
				time.Sleep(takes)
				s.guard.Settle(r, d, core.Outcome{Status: status})
				got[i] = status
			}
		})
	}
	wg.Wait()
	return many(n, func(i int) int { return got[i] })
}

// cookieOf returns the Cookie header of a new device cookie.
func (s *site) cookieOf(user string) string {
	s.t.Helper()
	c, err := s.guard.DeviceCookie(context.Background(), user)
	s.must(err)
	return c.Name + "=" + c.Value
}

// trust is why an attempt with a cookie from a new address is trusted.
func (s *site) trust(cookie, user string) string {
	s.fresh++
	s.serve(with(cookie, fmt.Sprintf("198.18.%d.%d", s.fresh/250, s.fresh%250), user), http.StatusOK)
	return s.last.Load().Trust
}

func (s *site) status(user, address string) login.Status {
	s.t.Helper()
	st, err := s.guard.Status(context.Background(), user, address)
	if err != nil {
		s.t.Error(err)
	}
	return st
}

// wantKnown checks whether an address is known for an account.
func (s *site) wantKnown(address, user string, want bool) {
	s.t.Helper()
	if st := s.status(user, address); st.KnownAddress != want {
		s.t.Errorf("%s is known for %s: %t, want %t", address, user, st.KnownAddress, want)
	}
}

// must fails the test if a call of support has failed.
func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) want(got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("statuses %s, want %s", got, want)
	}
}

func many(n int, f func(i int) int) string {
	counts := map[int]int{}
	for i := range n {
		counts[f(i)]++
	}
	return fmt.Sprint(counts)
}

func ip(i int) string { return fmt.Sprintf("198.51.%d.%d", i/250, 1+i%250) }

// shared is a store that several guards of one process open by the same name,
// as guards in several processes do. It can be cut off.
type shared struct {
	*core.Memory
	mu     sync.Mutex
	opened map[string]core.Counters
	gone   atomic.Bool
	only   string       // the limiter that is cut off; "": all
	left   atomic.Int64 // how many questions it still answers when it is cut off
}

func newShared() *shared {
	return &shared{Memory: core.Must(core.NewMemory(core.MemoryConfig{})), opened: map[string]core.Counters{}}
}

func (s *shared) Guarantees() core.Guarantees { return remote }

func (s *shared) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.opened[limiter]; c != nil {
		return c, nil
	}
	c, err := s.Memory.Open(limiter, rules)
	if err != nil {
		return nil, err
	}
	s.opened[limiter] = sharedCounters{c, s, limiter}
	return s.opened[limiter], nil
}

type sharedCounters struct {
	core.Counters
	s       *shared
	limiter string
}

func (c sharedCounters) Do(ctx context.Context, batch *core.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.s.gone.Load() && (c.s.only == "" || c.s.only == c.limiter) && c.s.left.Add(-1) < 0 {
		return errGone
	}
	return c.Counters.Do(ctx, batch)
}

// remote is what a store with a server promises that keeps no deadline.
var remote = core.Guarantees{Ops: core.AllOps, Exact: true, Shared: true, OnFailure: core.FailClosed}

var errGone = errors.New("connection refused")

// broken returns a store that is cut off.
func broken() *shared {
	s := newShared()
	s.gone.Store(true)
	return s
}

// private returns a store that the guard puts nothing around, so that its errors reach the
// guard, and the same store to cut it off.
func private() (core.Store, *shared) {
	store := newShared()
	g := remote
	g.Shared = false
	return says{store, g}, store
}

// says is a store with other guarantees around another store.
type says struct {
	core.Store
	guarantees core.Guarantees
}

func (s says) Guarantees() core.Guarantees { return s.guarantees }
