package adaptertest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func mounting(t *testing.T, a Adapter) {
	t.Run("a limiter that stands twice in a request's way counts once", func(t *testing.T) {
		l := Limit{Checker: byKey(t, keyfuncs.ClientIP(), 5)}
		c := direct(t, a.Serve(t, App{
			Limits: []Limit{l},
			Routes: []Route{{Method: http.MethodGet, Pattern: "/", Limits: []Limit{l, l}, Handler: ok}},
		}))
		want(t, count(7, func(int) response { return c.get("/") }), 200, 5, 429, 2)
	})

	t.Run("a middleware that copies the request does not hide that it was counted", func(t *testing.T) {
		l := Limit{Checker: byKey(t, keyfuncs.ClientIP(), 5), Expose: true}
		c := direct(t, a.Serve(t, App{
			Limits: []Limit{l},
			Inside: []Middleware{Copies, Copies},
			Routes: []Route{
				{Method: http.MethodGet, Pattern: "/", Limits: []Limit{l}, Handler: func(c Context) error {
					d, found := c.Decision()
					return c.Respond(http.StatusOK, fmt.Sprint(found, " ", d.Remaining, " ", len(c.Decisions())))
				}},
			},
		}))
		for i := range 5 {
			if got, want := c.get("/"), fmt.Sprint("true ", 4-i, " 1"); got.body != want {
				t.Errorf("request %d: the handler reads %q, want %q", i, got.body, want)
			}
		}
		want(t, count(1, func(int) response { return c.get("/") }), 429, 1)
	})

	t.Run("one limiter on several routes counts them together", func(t *testing.T) {
		l := Limit{Checker: byKey(t, keyfuncs.ClientIP(), 3)}
		c := direct(t, a.Serve(t, App{Routes: []Route{
			{Method: http.MethodGet, Pattern: "/a", Limits: []Limit{l}, Handler: ok},
			{Method: http.MethodGet, Pattern: "/b", Limits: []Limit{l}, Handler: ok},
		}}))
		want(t, count(6, func(i int) response { return c.get([]string{"/a", "/b"}[i%2]) }), 200, 3, 429, 3)
	})

	t.Run("the handler reads the decision", func(t *testing.T) {
		read := func(c Context) error {
			d, found := c.Decision()
			if !found || !d.Allowed || d.Rule != "r" || d.Remaining != 4 {
				return c.Respond(http.StatusInternalServerError, d.String())
			}
			return c.Respond(http.StatusOK, "")
		}
		c := direct(t, a.Serve(t, App{Routes: []Route{{
			Method: http.MethodGet, Pattern: "/", Handler: read,
			Limits: []Limit{{Checker: byKey(t, keyfuncs.ClientIP(), 5), Expose: true}},
		}}}))
		if got := c.get("/"); got.status != http.StatusOK {
			t.Errorf("status %d, decision %q", got.status, got.body)
		}
	})

	t.Run("the handler reads the decisions of all limiters", func(t *testing.T) {
		of := func(rule string, quota int64) Limit {
			return Limit{Expose: true, Checker: limiter(t, core.Config{Name: rule, Rules: []core.Rule{{Name: rule, Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(quota)}}}})}
		}
		outer, inner := of("outer", 9), of("inner", 5)
		read := func(c Context) error {
			text := ""
			for _, d := range c.Decisions() {
				text += fmt.Sprint(d.Rule, " ", d.Remaining, ", ")
			}
			if last, found := c.Decision(); !found || last.Rule != "inner" {
				text += "the last one is " + last.Rule
			}
			return c.Respond(http.StatusOK, text)
		}
		c := direct(t, a.Serve(t, App{
			Limits: []Limit{outer},
			Routes: []Route{
				{Method: http.MethodGet, Pattern: "/", Limits: []Limit{inner, outer}, Handler: read},
				{Method: http.MethodGet, Pattern: "/none", Handler: func(c Context) error { return c.Respond(http.StatusOK, fmt.Sprint(len(c.Decisions()))) }},
			},
		}))
		for _, want := range []string{"outer 8, inner 4, ", "outer 7, inner 3, "} {
			if got := c.get("/"); got.body != want {
				t.Errorf("the handler reads %q, want %q", got.body, want)
			}
		}
		if got := c.get("/none"); got.body != "1" {
			t.Errorf("a route of one limiter has %s decisions", got.body)
		}
	})

	t.Run("a dry run denies nobody", func(t *testing.T) {
		refused := 0
		hooks := core.HookFuncs{OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
			refused++
			return core.DefaultHooks{}.OnDisallowed(r, d)
		}}
		l := limiter(t, core.Config{DryRun: true, Hooks: hooks, Rules: []core.Rule{{Name: "r", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(2)}}}})
		c := direct(t, a.Serve(t, limited(l)))
		want(t, count(5, func(int) response { return c.get("/") }), 200, 5)
		if refused != 3 {
			t.Errorf("the hook was told of %d requests, want 3", refused)
		}
	})
}
