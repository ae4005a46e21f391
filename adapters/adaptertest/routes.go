package adaptertest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func routes(t *testing.T, a Adapter) {
	t.Run("all paths of a route share a quota", func(t *testing.T) {
		app := App{Routes: []Route{{Method: http.MethodGet, Pattern: "/login", Limits: []Limit{{Checker: hooktest.ByKey(t, keyfuncs.Route(), 2)}}, Handler: ok}}}
		c := direct(t, a.Serve(t, app))
		passed := 0
		for _, target := range []string{
			"/login", "/login", "/LOGIN", "/login/", "//login", "/%6cogin", "/./login", "/login?x=/health", "/login#", "http://" + c.addr + "/login", "/login",
		} {
			if c.raw("GET "+target+" HTTP/1.1\r\nHost: "+c.addr+"\r\nConnection: close\r\n\r\n") == http.StatusOK {
				passed++
			}
		}
		if passed != 2 {
			t.Errorf("%d passed, want 2", passed)
		}
	})

	t.Run("unknown paths are limited where the limiter stands before the router", func(t *testing.T) {
		app := limited(hooktest.ByKey(t, keyfuncs.Static(""), 1000))
		app.Limits = []Limit{{Checker: hooktest.ByKey(t, keyfuncs.ClientIP(), 5)}}
		c := direct(t, a.Serve(t, app))
		want(t, count(8, func(i int) response { return c.get(fmt.Sprintf("/x%d", i)) }), 404, 5, 429, 3)
	})

	t.Run("every method is limited", func(t *testing.T) {
		app := App{Limits: []Limit{{Checker: hooktest.ByKey(t, keyfuncs.Static(""), 1)}}}
		c := direct(t, a.Serve(t, app))
		c.do("PROPFIND", "/", "")
		for _, method := range []string{"PROPFIND", "REPORT", "DELETE", "OPTIONS", "GET", "HEAD"} {
			if got := c.do(method, "/", "").status; got != http.StatusTooManyRequests && got != http.StatusNotImplemented && got != http.StatusMethodNotAllowed {
				t.Errorf("%s: status %d", method, got)
			}
		}
	})

	t.Run("methods that are no methods are limited", func(t *testing.T) {
		l := hooktest.ByKey(t, keyfuncs.Static(""), 0)
		c := direct(t, a.Serve(t, App{Limits: []Limit{{Checker: l}}}))
		for _, method := range []string{"post", "QUERY", "PROPFIND"} {
			before := hooktest.Count(l).Denied
			status := c.raw(method + " / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if status != http.StatusTooManyRequests || hooktest.Count(l).Denied != before+1 {
				t.Errorf("%s: status %d", method, status)
			}
		}
	})

	t.Run("what is skipped is decided by the route that is matched", func(t *testing.T) {
		hooks := hooktest.Funcs{ShouldLimitFunc: func(r core.Request) bool { return !strings.HasSuffix(r.Route(), "/health") }}
		l := hooktest.Limiter(t, core.Config{Hooks: hooks, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(0)}}}})
		c := direct(t, a.Serve(t, App{Routes: []Route{
			{Method: http.MethodGet, Pattern: "/health", Limits: []Limit{{Checker: l}}, Handler: ok},
			{Method: http.MethodGet, Pattern: "/login", Limits: []Limit{{Checker: l}}, Handler: ok},
		}}))
		if got := c.get("/health").status; got != http.StatusOK {
			t.Errorf("/health: %d", got)
		}
		for _, target := range []string{"/login?x=/health", "/health/../login", "/login"} {
			status := c.raw("GET " + target + " HTTP/1.1\r\nHost: a\r\nX-Original-URL: /health\r\nConnection: close\r\n\r\n")
			if status == http.StatusOK {
				t.Errorf("%s was let through", target)
			}
		}
	})

	t.Run("preflights are not counted, plain OPTIONS is", func(t *testing.T) {
		l := hooktest.ByKey(t, keyfuncs.ClientIP(), 2)
		c := direct(t, a.Serve(t, App{
			Limits: []Limit{{Checker: l}},
			Routes: []Route{{Method: http.MethodOptions, Pattern: "/api", Handler: ok}, {Method: http.MethodGet, Pattern: "/api", Handler: ok}},
		}))
		want(t, count(20, func(int) response {
			return c.do(http.MethodOptions, "/api", "", "Origin", "https://a.example", "Access-Control-Request-Method", "POST")
		}), 200, 20)
		want(t, count(3, func(int) response { return c.do(http.MethodOptions, "/api", "") }), 200, 2, 429, 1)
	})

	t.Run("the route is the framework's pattern", func(t *testing.T) {
		var mu sync.Mutex
		var seen []string
		l := hooktest.ByKey(t, keyfuncs.Func(func(r core.Request) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, r.Method()+" "+r.Path()+" "+r.Route())
			return "", nil
		}), 5)
		c := direct(t, a.Serve(t, App{Routes: []Route{{Method: http.MethodGet, Pattern: "/a/b", Limits: []Limit{{Checker: l}}, Handler: ok}}}))
		c.get("/a/b?c=d")
		mu.Lock()
		defer mu.Unlock()
		if len(seen) != 1 || seen[0] != "GET /a/b /a/b" && seen[0] != "GET /a/b GET /a/b" {
			t.Errorf("the limiter saw %q", seen)
		}
	})

	t.Run("a request reads alike", func(t *testing.T) {
		var mu sync.Mutex
		seen := ""
		l := hooktest.ByKey(t, keyfuncs.Func(func(r core.Request) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			text := func(v string, found bool) string { return fmt.Sprintf("%q %v", v, found) }
			seen = strings.Join([]string{
				text(r.Query("a")), text(r.Query("b")), text(r.Query("none")), r.RawQuery(), r.EscapedPath(), r.Path(),
				fmt.Sprintf("%q %q %q %q", r.HeaderValues("Host"), r.HeaderValues("host"), r.HeaderValues("X-Two"), r.HeaderValues("X-None")),
				text(r.Cookie("c")), text(r.Cookie("none")), r.RemoteAddr()[:10], fmt.Sprint(r.Value(Copied), r.Value("none")),
			}, "\n")
			return "", nil
		}), 1000)
		addr := a.Serve(t, App{Outside: []Middleware{Copies}, Routes: []Route{{Method: http.MethodGet, Pattern: "/a/b", Limits: []Limit{{Checker: l}}, Handler: ok}}})
		direct(t, addr).raw("GET /a/b?a=first&a=second&b=&A=x HTTP/1.1\r\nHost: host.example:8080\r\nX-Two: 1\r\nx-two: 2\r\nCookie: c=first; c=second\r\nConnection: close\r\n\r\n")
		want := strings.Join([]string{
			`"first" true`, `"" true`, `"" false`, "a=first&a=second&b=&A=x", "/a/b", "/a/b",
			`["host.example:8080"] ["host.example:8080"] ["1" "2"] []`, `"first" true`, `"" false`, "127.0.0.1:", "copied<nil>",
		}, "\n")
		mu.Lock()
		defer mu.Unlock()
		if seen != want {
			t.Errorf("the limiter reads\n%s\nwant\n%s", seen, want)
		}
	})

	t.Run("the host of a target in the absolute form", func(t *testing.T) {
		c := direct(t, a.Serve(t, limited(hooktest.ByKey(t, keyfuncs.Header("Host"), 2))))
		passed := 0
		for i := range 6 {
			if c.raw(fmt.Sprintf("GET http://tenant.example/ HTTP/1.1\r\nHost: h%d.example\r\nConnection: close\r\n\r\n", i)) == http.StatusOK {
				passed++
			}
		}
		if passed != 2 {
			t.Errorf("%d passed, want 2: a client that writes other hosts has one quota", passed)
		}
	})

	t.Run("the user of an earlier middleware", func(t *testing.T) {
		app := limited(hooktest.ByKey(t, keyfuncs.UserValue(UserKey), 1))
		app.User = "alice"
		c := direct(t, a.Serve(t, app))
		want(t, count(3, func(int) response { return c.get("/") }), 200, 1, 429, 2)
		app.User = "" // nobody: the rule does not apply
		c = direct(t, a.Serve(t, app))
		want(t, count(3, func(int) response { return c.get("/") }), 200, 3)
	})

	// Strings of a framework that uses its buffers again.
	for name, key := range map[string]core.KeyFunc{
		"form field": keyfuncs.PostField("v"),
		"header":     keyfuncs.Header("X-V"),
		"query":      keyfuncs.Query("q"),
		"cookie":     keyfuncs.Cookie("v"),
		"address":    behindProxies("X-Forwarded-For"),
	} {
		t.Run("keys stay intact: "+name, func(t *testing.T) {
			var mu sync.Mutex
			var kept []core.Decision
			hooks := hooktest.Funcs{OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
				mu.Lock()
				defer mu.Unlock()
				kept = append(kept, d)
				return core.DefaultHooks{}.OnDisallowed(r, d)
			}}
			l := hooktest.Limiter(t, core.Config{Hooks: hooks, Rules: []core.Rule{{Name: "r", Key: key, Limits: []core.Limit{core.PerMinute(0)}}}})
			c := proxied(t, a.Serve(t, App{Routes: []Route{{Method: http.MethodPost, Pattern: "/", Limits: []Limit{{Checker: l}}, Handler: ok}}}))
			values := []string{"1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4", "5.5.5.5", "6.6.6.6"}
			for _, v := range values {
				c.post("/?q="+v, "v="+v, "X-V", v, "Cookie", "v="+v, "X-Forwarded-For", v)
			}
			mu.Lock()
			defer mu.Unlock()
			for i, d := range kept {
				if want := (core.StoreRule{Name: "r"}).StoredKey("default", append([]byte(values[i]), 0)); d.StoredKey() != want {
					t.Errorf("request %d: the decision's key is another one afterwards: %s, want %s", i, d.StoredKey(), want)
				}
			}
			if len(kept) != len(values) {
				t.Errorf("%d requests denied, want %d", len(kept), len(values))
			}
		})
	}
}
