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

// pathValues tests keys that are parameters of the matched route.
func pathValues(t *testing.T, a Adapter) {
	pattern := "/tenants/" + a.Parameter + "/items"
	// on is an application with the limiter on two routes, one of which has no parameter.
	on := func(l core.Checker, h Handler) App {
		return App{Routes: []Route{
			{Method: http.MethodGet, Pattern: pattern, Limits: []Limit{{Checker: l}}, Handler: h},
			{Method: http.MethodGet, Pattern: "/plain", Limits: []Limit{{Checker: l}}, Handler: h},
		}}
	}

	t.Run("each value has its quota", func(t *testing.T) {
		c := direct(t, a.Serve(t, on(hooktest.ByKey(t, keyfuncs.PathValue("id"), 2), ok)))
		for _, tenant := range []string{"a", "b", "a-long-name"} {
			want(t, count(3, func(int) response { return c.get("/tenants/" + tenant + "/items") }), 200, 2, 429, 1)
		}
	})

	t.Run("the key is what the handler reads", func(t *testing.T) {
		var mu sync.Mutex
		var keys, read []string
		key := keyfuncs.PathValue("id")
		l := hooktest.ByKey(t, func(dst []byte, r core.Request) ([]byte, error) {
			k, err := key(dst, r)
			mu.Lock()
			defer mu.Unlock()
			keys = append(keys, string(k[len(dst):]))
			return k, err
		}, 1000)
		c := direct(t, a.Serve(t, on(l, func(c Context) error {
			mu.Lock()
			defer mu.Unlock()
			read = append(read, strings.Clone(c.PathValue("id")))
			return c.Respond(http.StatusOK, "")
		})))
		sent := []string{"acme", "%61cme", "a%2Fb", "a+b", "a%20b", "%C3%A9", "ACME", "a;b", "x.y"}
		for _, tenant := range sent {
			c.raw("GET /tenants/" + tenant + "/items HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		}
		mu.Lock()
		defer mu.Unlock()
		for i, got := range read {
			if i >= len(keys) || got == "" || keys[i] != got {
				t.Errorf("the handler reads %q, and the keys are %q", read, keys)
				break
			}
		}
		if len(read) < len(sent)-1 || len(keys) != len(read) { // some routers find no route for a%2Fb
			t.Errorf("%d keys and %d requests of %d reached the handler", len(keys), len(read), len(sent))
		}
	})

	t.Run("a route without the parameter has the empty key, and the log says it once", func(t *testing.T) {
		j := &journal{}
		l := hooktest.Limiter(t, core.Config{Log: j.logger(), Rules: []core.Rule{{Name: "r", Key: keyfuncs.PathValue("id"), Limits: []core.Limit{core.PerMinute(2)}}}})
		c := direct(t, a.Serve(t, on(l, ok)))
		want(t, count(3, func(int) response { return c.get("/plain") }), 200, 2, 429, 1)
		want(t, count(2, func(int) response { return c.get("/tenants/a/items") }), 200, 2)
		if lines := j.take(); len(lines) != 1 || !strings.Contains(lines[0], "PathValue finds no value") || !strings.Contains(lines[0], "parameter=id") {
			t.Errorf("the log has %q", lines)
		}
	})

	t.Run("before the router there is no value", func(t *testing.T) {
		app := on(hooktest.ByKey(t, keyfuncs.Static(""), 1000), ok)
		app.Limits = []Limit{{Checker: hooktest.Limiter(t, core.Config{Name: "around", Log: (&journal{}).logger(), Rules: []core.Rule{{
			Name: "r", Key: keyfuncs.PathValue("id"), Limits: []core.Limit{core.PerMinute(3)},
		}}})}}
		c := direct(t, a.Serve(t, app))
		got := count(6, func(i int) response { return c.get(fmt.Sprintf("/tenants/t%d/items", i)) })
		if a.LimitsFirst {
			want(t, got, 200, 3, 429, 3)
		} else {
			want(t, got, 200, 6)
		}
	})

	t.Run("keys stay intact", func(t *testing.T) {
		var mu sync.Mutex
		var kept []core.Decision
		hooks := hooktest.Funcs{OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
			mu.Lock()
			defer mu.Unlock()
			kept = append(kept, d)
			return core.DefaultHooks{}.OnDisallowed(r, d)
		}}
		l := hooktest.Limiter(t, core.Config{Hooks: hooks, Rules: []core.Rule{{Name: "r", Key: keyfuncs.PathValue("id"), Limits: []core.Limit{core.PerMinute(0)}}}})
		c := direct(t, a.Serve(t, on(l, ok)))
		for i := range 6 {
			c.get(fmt.Sprintf("/tenants/t%d/items", i))
		}
		mu.Lock()
		defer mu.Unlock()
		for i, d := range kept {
			if want := fmt.Sprintf("t%d", i); d.Key() != want {
				t.Errorf("request %d: the decision's key is %q afterwards, want %q", i, d.Key(), want)
			}
		}
		if len(kept) != 6 {
			t.Errorf("%d requests denied, want 6", len(kept))
		}
	})
}
