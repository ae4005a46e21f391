// Package sitetest tests the login site over HTTP, the same for every
// framework that serves it.
package sitetest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/floodgate-go/floodgate/examples/login/site"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/internal/postgrestest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// Run starts the site as often as it needs, as the server that serve makes of it, and tests
// it with counters in this process.
func Run(t *testing.T, serve func(*site.Site) site.Server) { runWith(t, serve, "memory", func() {}) }

// RunWithStores is Run with each kind of shared store.
func RunWithStores(t *testing.T, serve func(*site.Site) site.Server) {
	t.Run("redis", func(t *testing.T) {
		server := redistest.Start(t)
		runWith(t, serve, "redis://"+server.Addr+"/0", func() { server.MustDo("FLUSHALL") })
	})
	t.Run("synced+redis", func(t *testing.T) {
		server := redistest.Start(t)
		runWith(t, serve, "synced+redis://"+server.Addr+"/0?interval=10ms", func() { server.MustDo("FLUSHALL") })
	})
	t.Run("synced+postgres", func(t *testing.T) {
		server := postgrestest.Start(t)
		pool, err := pgxpool.New(t.Context(), server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		runWith(t, serve, "synced+"+server.URL+"&interval=10ms", func() {
			_, _ = pool.Exec(t.Context(), "DELETE FROM floodgate_counters") // there are none before the first
		})
	})
	t.Run("memcached", func(t *testing.T) {
		server := memcachedtest.Start(t)
		runWith(t, serve, "memcached://"+server.Addr, func() { server.MustDo("flush_all") })
	})
}

// runWith tests the site with one store, which empty empties.
func runWith(t *testing.T, serve func(*site.Site) site.Server, store string, empty func()) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *app)
	}{
		{"the API", testAPI},
		{"logins", testLogin},
		{"the owner gets in while strangers guess", testTheOwnerGetsIn},
		{"a hidden name reaches no handler", testAHiddenNameReachesNoHandler},
		{"wrong passwords all at once", testWrongPasswordsAllAtOnce},
		{"the audit log", testTheAuditLog},
		{"the other routes", testTheOtherRoutes},
	} {
		t.Run(test.name, func(t *testing.T) {
			empty()
			test.run(t, start(t, serve, store))
		})
	}
}

// The API is limited by address, whatever strangers write.
func testAPI(t *testing.T, a *app) {
	get := func(local, forwardedFor string) func(int) int {
		return func(i int) int {
			status, _ := a.ask(t, from(local), strings.ReplaceAll(forwardedFor, "$i", fmt.Sprint(i)), http.MethodGet, "/api", "")
			return status
		}
	}
	if got := hits(50, get("127.0.0.1", "6.6.6.$i")); got != "map[200:5 429:45]" {
		t.Errorf("from a stranger: %s", got)
	}
	if got := hits(20, get("127.0.0.2", "6.6.6.$i, 203.0.113.9")); got != "map[200:5 429:15]" {
		t.Errorf("from the proxy, prepended: %s", got)
	}
	if got := hits(20, get("127.0.0.2", "203.0.113.1$i")); got != "map[200:20]" {
		t.Errorf("from the proxy, different clients: %s", got)
	}
}

func testLogin(t *testing.T, a *app) {
	if got := hits(8, func(int) int { return a.login(t, "203.0.113.1", "alice", "x") }); got != "map[401:5 429:3]" {
		t.Errorf("wrong passwords: %s", got)
	}
	if got := hits(20, func(i int) int { return a.login(t, "203.0.113.1", fmt.Sprint("u", i), "x") }); got != "map[401:15 429:5]" {
		// The three that were denied above have taken nothing.
		t.Errorf("one address, many names, after 5 attempts: %s", got)
	}
	if got := hits(4, func(int) int { return a.login(t, "203.0.113.2", "bob", "x") }); got != "map[401:4]" {
		t.Errorf("four wrong: %s", got)
	}
	if got := a.login(t, "203.0.113.2", " BOB ", "ok"); got != http.StatusOK {
		t.Errorf("the right one: %d", got)
	}
	if got := hits(6, func(int) int { return a.login(t, "203.0.113.2", "bob", "x") }); got != "map[401:5 429:1]" {
		t.Errorf("after a success: %s", got)
	}
	if got := hits(60, func(i int) int { return a.login(t, fmt.Sprint("198.51.100.", i), "carol", "x") }); got != "map[401:50 429:10]" {
		t.Errorf("one name, many addresses: %s", got)
	}
}

// Guesses from many addresses use up the account's failures. Its owner gets in from where the owner
// has logged in before, and elsewhere with the cookie.
func testTheOwnerGetsIn(t *testing.T, a *app) {
	status, header, _ := a.send(t, from("127.0.0.2"), "203.0.113.1", http.MethodPost, "/login", "username=carol&password=ok", "")
	cookie := (&http.Response{Header: header}).Cookies()
	if status != http.StatusOK || len(cookie) != 1 || cookie[0].Name != "device" || !cookie[0].HttpOnly || cookie[0].Secure {
		t.Fatalf("status %d, cookies %v", status, cookie)
	}
	if got := hits(60, func(i int) int { return a.login(t, fmt.Sprint("198.51.100.", i), "carol", "x") }); got != "map[401:50 429:10]" {
		t.Errorf("strangers: %s", got)
	}
	if got := a.login(t, "198.51.101.1", "carol", "ok"); got != http.StatusTooManyRequests {
		t.Errorf("the right password from a stranger's address: %d", got)
	}
	if got := a.login(t, "203.0.113.1", "carol", "ok"); got != http.StatusOK {
		t.Errorf("at home: %d", got)
	}
	with := func(ip, value string) int {
		status, _, _ := a.send(t, from("127.0.0.2"), ip, http.MethodPost, "/login", "username=carol&password=ok", "device="+value)
		return status
	}
	if got := with("198.51.101.2", cookie[0].Value); got != http.StatusOK {
		t.Errorf("elsewhere, with the cookie: %d", got)
	}
	if got := with("198.51.101.3", cookie[0].Value[1:]); got != http.StatusTooManyRequests {
		t.Errorf("with a forged cookie: %d", got)
	}
	if got := hits(10, func(i int) int { return a.login(t, "203.0.113.1", "carol", "x") }); got != "map[401:5 429:5]" {
		t.Errorf("wrong ones at home: %s", got)
	}
}

func testWrongPasswordsAllAtOnce(t *testing.T, a *app) {
	statuses := make(chan int, 200)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() { statuses <- a.login(t, "203.0.113.1", "alice", "x") })
	}
	wg.Wait()
	if got := hits(200, func(int) int { return <-statuses }); got != "map[401:5 429:195]" {
		t.Errorf("%s", got)
	}
}

// What is denied is logged, without names and addresses.
func testTheAuditLog(t *testing.T, a *app) {
	for range 7 {
		a.login(t, "203.0.113.77", "alice level=INFO", "x")
	}
	for range 7 {
		a.ask(t, from("127.0.0.3"), "", http.MethodGet, "/api", "")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	text := a.log.String()
	if strings.Count(text, "request denied") != 2 || strings.Count(text, "login denied") != 2 ||
		!strings.Contains(text, "rule=address-account retry_after=1m0s account=") {
		t.Errorf("the log:\n%s", text)
	}
	for _, secret := range []string{"alice", "203.0.113", "127.0.0.3", "level=INFO"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log has %q:\n%s", secret, text)
		}
	}
}

func testTheOtherRoutes(t *testing.T, a *app) {
	c := from("127.0.0.1")
	if got := hits(100, func(int) int { s, _ := a.ask(t, c, "", http.MethodGet, "/healthz", ""); return s }); got != "map[200:100]" {
		t.Errorf("/healthz: %s", got)
	}
	if status, body := a.ask(t, c, "", http.MethodGet, "/", ""); status != http.StatusOK || !strings.Contains(body, `<form method="post" action="/login">`) {
		t.Errorf("/: %d\n%s", status, body)
	}
	if status, _ := a.ask(t, c, "", http.MethodGet, "/login", ""); status != http.StatusMethodNotAllowed {
		t.Errorf("GET /login: %d", status)
	}
}

// A name that the limiter cannot see reaches no handler.
func testAHiddenNameReachesNoHandler(t *testing.T, a *app) {
	status, _ := a.ask(t, from("127.0.0.2"), "203.0.113.1", http.MethodPost, "/login", "username=alice&password=x&pad="+strings.Repeat("x", 70_000))
	if status != http.StatusBadRequest {
		t.Errorf("behind padding: %d", status)
	}
	if status, _ := a.ask(t, from("127.0.0.2"), "203.0.113.1", http.MethodPost, "/login?username=alice", "password=x"); status != http.StatusBadRequest {
		t.Errorf("in the query: %d", status)
	}
	for i, row := range []struct{ query, form string }{
		{"?username=alice", "USERNAME=d$i&password=ok"},
		{"?Username=alice", "username=d$i&password=ok"},
		{"", "username=d$i&username[]=alice&password=ok"},
		{"", "userna[]me=alice&USERNAME=d$i&password=ok"},
		{"", "username=alice%E2%80%8B$i&password=ok"},
	} {
		got := hits(20, func(n int) int {
			ip := fmt.Sprintf("198.51.%d.%d", 100+i, n)
			status, _ := a.ask(t, from("127.0.0.2"), ip, http.MethodPost, "/login"+row.query, strings.ReplaceAll(row.form, "$i", fmt.Sprint(n)))
			return status
		})
		if got != "map[400:20]" { // the password is right: what reaches the handler is 200
			t.Errorf("%s with the form %s: %s", row.query, row.form, got)
		}
	}
}
