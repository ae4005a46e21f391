package adaptertest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// headers are those lines of a response that the limiter is answerable for.
func headers(r response) []string {
	var lines []string
	for _, name := range []string{
		"Cache-Control", "Content-Type", "Ratelimit", "Ratelimit-Policy", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
		"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After", "X-Denied",
	} {
		for _, v := range r.header.Values(name) {
			lines = append(lines, name+": "+v)
		}
	}
	return lines
}

// brokenStore always fails.
type brokenStore struct{ core.Store }

type brokenCounters struct{ core.Counters }

var errStore = errors.New("dial tcp 10.1.2.3:6379: connection refused")

func (b brokenStore) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := b.Store.Open(limiter, rules)
	return brokenCounters{c}, err
}

func (brokenCounters) Do(context.Context, *core.Batch) error { return errStore }

func responses(t *testing.T, a Adapter) {
	check := func(t *testing.T, got response, status int, body string, lines ...string) {
		t.Helper()
		if got.status != status || got.body != body {
			t.Errorf("status %d, body %q, want %d, %q", got.status, got.body, status, body)
		}
		if have := headers(got); !slices.Equal(have, lines) {
			t.Errorf("headers\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(lines, "\n"))
		}
	}
	const problem = "Content-Type: application/problem+json"
	// The handler sets its own type, as frameworks differ in the one they add.
	handler := func(c Context) error {
		c.SetHeader("Content-Type", "text/plain")
		return c.Respond(http.StatusOK, "ok")
	}
	serve := func(t *testing.T, l ...Limit) *client {
		t.Helper()
		return direct(t, a.Serve(t, App{Routes: []Route{
			{Method: http.MethodGet, Pattern: "/", Limits: l, Handler: handler},
			{Method: http.MethodHead, Pattern: "/head", Limits: l, Handler: handler},
		}}))
	}

	t.Run("allowed and denied, to the byte", func(t *testing.T) {
		c := serve(t, Limit{Checker: hooktest.ByKey(t, keyfuncs.Static(""), 1)})
		check(t, c.get("/"), 200, "ok", "Content-Type: text/plain", `Ratelimit: "r";r=0;t=60`, `Ratelimit-Policy: "r";q=1;w=60`)
		check(t, c.get("/", "Accept", "text/html"), 429,
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"Try again in 60 s.","violated-policies":["r"]}`,
			"Cache-Control: no-store", problem, `Ratelimit: "r";r=0;t=60`, `Ratelimit-Policy: "r";q=1;w=60`, "Retry-After: 60")
		check(t, c.do(http.MethodHead, "/head", ""), 429, "",
			"Cache-Control: no-store", problem, `Ratelimit: "r";r=0;t=60`, `Ratelimit-Policy: "r";q=1;w=60`, "Retry-After: 60")
	})

	t.Run("other headers", func(t *testing.T) {
		l := hooktest.Limiter(t, core.Config{
			Headers: core.HeadersDraft03 | core.HeadersXMillis,
			Rules:   []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{{Quota: 1, Window: core.MinWindow * 1500, Algorithm: core.FixedWindow}}}},
		})
		c := serve(t, Limit{Checker: l})
		lines := []string{
			"Ratelimit-Limit: 1", "Ratelimit-Remaining: 0", "Ratelimit-Reset: 2",
			"X-Ratelimit-Limit: 1", "X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: 1500",
		}
		check(t, c.get("/"), 200, "ok", append([]string{"Content-Type: text/plain"}, lines...)...)
		got := c.get("/")
		check(t, got, 429, got.body, append(append([]string{"Cache-Control: no-store", problem}, lines...), "Retry-After: 2")...)
	})

	t.Run("no headers", func(t *testing.T) {
		l := hooktest.Limiter(t, core.Config{Headers: core.HeadersOff, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(1)}}}})
		check(t, serve(t, Limit{Checker: l}).get("/"), 200, "ok", "Content-Type: text/plain")
	})

	t.Run("two limiters", func(t *testing.T) {
		first := hooktest.Limiter(t, core.Config{Rules: []core.Rule{{Name: "a", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(5)}}}})
		second := hooktest.Limiter(t, core.Config{Rules: []core.Rule{{Name: "b", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(1)}}}})
		c := serve(t, Limit{Checker: first}, Limit{Checker: second})
		check(t, c.get("/"), 200, "ok", "Content-Type: text/plain",
			`Ratelimit: "a";r=4;t=60`, `Ratelimit: "b";r=0;t=60`, `Ratelimit-Policy: "a";q=5;w=60`, `Ratelimit-Policy: "b";q=1;w=60`)
		got := c.get("/")
		if got.status != 429 || !strings.Contains(got.body, `"violated-policies":["b"]`) || len(got.header.Values("Ratelimit")) != 2 {
			t.Errorf("status %d, body %s, header %v", got.status, got.body, got.header)
		}
	})

	t.Run("a denial shows nothing of the client", func(t *testing.T) {
		l := hooktest.Limiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: keyfuncs.Query("user"), Limits: []core.Limit{core.PerMinute(0)}}}})
		got := serve(t, Limit{Checker: l}).get("/?user=alice")
		for name, values := range got.header {
			got.body += name + strings.Join(values, " ")
		}
		if got.status != 429 || strings.Contains(got.body, "alice") || strings.Contains(got.body, "127.0.0") {
			t.Errorf("%d %s", got.status, got.body)
		}
	})

	t.Run("responses without a body", func(t *testing.T) {
		l := hooktest.ByKey(t, keyfuncs.Static(""), 5)
		for status, handler := range map[int]Handler{
			http.StatusNoContent:   func(c Context) error { return c.Respond(http.StatusNoContent, "") },
			http.StatusNotModified: func(c Context) error { return c.Respond(http.StatusNotModified, "") },
		} {
			c := direct(t, a.Serve(t, App{Routes: []Route{{Method: http.MethodGet, Pattern: "/", Limits: []Limit{{Checker: l}}, Handler: handler}}}))
			if got := c.get("/"); got.status != status || got.body != "" || got.header.Get("Ratelimit") == "" {
				t.Errorf("%d: %+v", status, got)
			}
		}
	})

	t.Run("what an application sets for every response is not doubled in a denied one", func(t *testing.T) {
		for _, by := range []Limit{{}, {Denied: "teapot"}} {
			by.Checker = hooktest.ByKey(t, keyfuncs.Static(""), 1)
			c := direct(t, a.Serve(t, App{Outside: []Middleware{Headers}, Routes: []Route{{Method: http.MethodGet, Pattern: "/", Limits: []Limit{by}, Handler: handler}}}))
			c.get("/")
			got := c.get("/")
			for name, want := range map[string][]string{"Retry-After": {"60"}, "Cache-Control": {"no-store"}, "Etag": nil, "Last-Modified": nil} {
				if lines := got.header.Values(name); !slices.Equal(lines, want) {
					t.Errorf("status %d, %s: %q, want %q", got.status, name, lines, want)
				}
			}
		}
		// What a hook sets replaces the line of the limiter.
		hooks := hooktest.Funcs{OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
			den := core.DefaultHooks{}.OnDisallowed(r, d)
			den.Header = append(den.Header, core.Header{Name: "retry-after", Value: "7"}, core.Header{Name: "CACHE-CONTROL", Value: "private"})
			return den
		}}
		l := hooktest.Limiter(t, core.Config{Hooks: hooks, Headers: core.HeadersOff, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(0)}}}})
		got := serve(t, Limit{Checker: l}).get("/")
		if retry, cache := got.header.Values("Retry-After"), got.header.Values("Cache-Control"); !slices.Equal(retry, []string{"7"}) || !slices.Equal(cache, []string{"private"}) {
			t.Errorf("Retry-After %q, Cache-Control %q", retry, cache)
		}
	})

	t.Run("a bad request", func(t *testing.T) {
		key := keyfuncs.Func(func(core.Request) (string, error) { return "", core.ErrBadRequest })
		check(t, serve(t, Limit{Checker: hooktest.ByKey(t, key, 1)}).get("/"), 400,
			`{"type":"about:blank","title":"Bad Request","status":400,"detail":"The request cannot be understood."}`,
			"Cache-Control: no-store", problem)
	})

	t.Run("a store that fails", func(t *testing.T) {
		store := brokenStore{core.Must(core.NewMemory(core.MemoryConfig{}))}
		l := hooktest.Limiter(t, core.Config{Name: "l", Store: store, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(1)}}}})
		check(t, serve(t, Limit{Checker: l}).get("/"), 503,
			`{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"The request cannot be processed right now. Try again later."}`,
			"Cache-Control: no-store", problem, "Retry-After: 1")
	})

	for _, row := range []struct {
		name   string
		denial core.Denial
		status int
	}{
		{"another status", core.Denial{Status: 403, Body: []byte("no")}, 403},
		{"a status that is none", core.Denial{Status: 7, Body: []byte("no")}, 429},
		{"success", core.Denial{Status: 200, Body: []byte("no")}, 200},
		{"nothing at all", core.Denial{}, 429},
	} {
		t.Run("a hook's denial: "+row.name, func(t *testing.T) {
			row.denial.Header = []core.Header{{Name: "x-denied", Value: "yes"}, {Name: "Content-Type", Value: "text/x"}}
			hooks := hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { return row.denial }}
			l := hooktest.Limiter(t, core.Config{Hooks: hooks, Headers: core.HeadersOff, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(0)}}}})
			check(t, serve(t, Limit{Checker: l}).get("/"), row.status, string(row.denial.Body), "Cache-Control: no-store", "Content-Type: text/x", "X-Denied: yes")
		})
	}

	t.Run("the framework's own handler for denied requests", func(t *testing.T) {
		calls := 0
		hooks := hooktest.Funcs{OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
			calls++
			den := core.DefaultHooks{}.OnDisallowed(r, d)
			den.Header[0].Name = "content-type"
			return den
		}}
		l := hooktest.Limiter(t, core.Config{Hooks: hooks, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(0)}}}})
		got := serve(t, Limit{Checker: l, Denied: "teapot"}).get("/")
		if got.status != http.StatusTeapot || got.body != "teapot" || got.header.Get("Ratelimit") == "" || calls != 1 {
			t.Errorf("status %d, body %q, header %v, hook called %d times", got.status, got.body, got.header, calls)
		}
		if kind := got.header.Get("Content-Type"); strings.Contains(kind, "problem") {
			t.Errorf("Content-Type is %q, that of a body that was not sent", kind)
		}
		if !a.ReturnsErrors {
			return
		}
		got = serve(t, Limit{Checker: hooktest.ByKey(t, keyfuncs.Static(""), 0), DeniedError: true}).get("/")
		if got.status != http.StatusTeapot || got.header.Get("Ratelimit") == "" {
			t.Errorf("an error of the handler: status %d, header %v", got.status, got.header)
		}
	})
}
