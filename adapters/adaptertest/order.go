package adaptertest

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// The framework's own middlewares before and behind the limiter.
func order(t *testing.T, a Adapter) {
	const origin = AllowedOrigin
	for _, outside := range []bool{true, false} {
		place := func(app App, ms ...Middleware) App {
			if outside {
				app.Outside = ms
			} else {
				app.Inside = ms
			}
			return app
		}
		where := map[bool]string{true: "outside", false: "inside"}[outside]

		t.Run(fmt.Sprintf("a login with recovery, CORS and logging %s", where), func(t *testing.T) {
			attempts := new(atomic.Int64)
			app, _ := loginApp(t, attempts)
			app.Limits, app.Routes[0].Limits = app.Routes[0].Limits, nil
			c := proxied(t, a.Serve(t, place(app, Recovery, CORS, Logging)))
			attempt := func(int) response {
				return c.post("/login", "username=alice&password=x", "X-Forwarded-For", "203.0.113.1", "Origin", origin)
			}
			want(t, count(8, attempt), 401, 5, 429, 3)
			if n := attempts.Load(); n != 5 {
				t.Errorf("%d attempts reached the handler, want 5", n)
			}
		})

		t.Run("a panic with recovery "+where, func(t *testing.T) {
			w := hooktest.Watch(t)
			app := App{Limits: []Limit{{Checker: w}}, Routes: []Route{
				{Method: http.MethodGet, Pattern: "/", Handler: func(Context) error { panic("ordinary") }},
			}}
			c := direct(t, a.Serve(t, place(app, Logging, Recovery)))
			if got := c.get("/").status; got != http.StatusInternalServerError {
				t.Errorf("the client saw %d", got)
			}
			// What recovers behind the limiter leaves nothing but a status.
			if o := w.Next(t); o.Status != http.StatusInternalServerError || o.Panicked != outside {
				t.Errorf("the limiter learnt %+v", o)
			}
		})

		t.Run("CORS "+where, func(t *testing.T) {
			l := hooktest.ByKey(t, keyfuncs.ClientIP(), 2)
			app := App{Limits: []Limit{{Checker: l}}, Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: ok}}}
			c := direct(t, a.Serve(t, place(app, CORS)))
			want(t, count(20, func(int) response {
				return c.do(http.MethodOptions, "/", "", "Origin", origin, "Access-Control-Request-Method", "GET")
			}), 204, 20)
			for i, status := range []int{200, 200, 429} {
				got := c.get("/", "Origin", origin)
				if got.status != status {
					t.Errorf("request %d: %d, want %d", i, got.status, status)
				}
				// A denied response is readable for the page only with CORS outside.
				if readable := got.header.Get("Access-Control-Allow-Origin") != ""; readable != (outside || status == 200) {
					t.Errorf("request %d, status %d: readable %v", i, got.status, readable)
				}
			}
		})
	}
}
