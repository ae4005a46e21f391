// Package compat tests the adapters and stores beside routers and libraries that users combine with them.
package compat

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	coder "github.com/coder/websocket"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	gorilla "github.com/gorilla/websocket"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func limiter(t *testing.T, rule core.Rule) *core.Limiter {
	t.Helper()
	rule.Name = "r"
	l, err := core.New(core.Config{Rules: []core.Rule{rule}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func hello(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

func statuses(h http.Handler, paths ...string) (all []int) {
	for _, p := range paths {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, p, nil))
		all = append(all, rec.Code)
	}
	return all
}

func want(t *testing.T, got []int, want ...int) {
	t.Helper()
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("statuses %v, want %v", got, want)
		}
	}
}

// Middleware of a chi router, of a group and of a route: each of them counts.
func TestChi(t *testing.T) {
	l := httplimit.Middleware(limiter(t, core.Rule{Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(9)}}))
	r := chi.NewRouter()
	r.Use(middleware.Recoverer, l, middleware.RequestID)
	r.Group(func(g chi.Router) {
		g.Use(l)
		g.With(l).Get("/a/{id}", hello)
	})
	want(t, statuses(r, "/a/1", "/a/2", "/none", "/a/3"), 200, 200, 404, 429)
}

// A limiter inside the router keys by chi's pattern.
func TestChisPattern(t *testing.T) {
	pattern := keyfuncs.Func(func(r core.Request) (string, error) {
		return chi.RouteContext(r.Context()).RoutePattern(), nil
	})
	l := httplimit.Middleware(limiter(t, core.Rule{Key: pattern, Limits: []core.Limit{core.PerHour(2)}}))
	r := chi.NewRouter()
	r.With(l).Get("/a/{id}", hello)
	r.With(l).Get("/b/{id}", hello)
	want(t, statuses(r, "/a/1", "/b/1", "/a/2", "/a/3", "/b/2"), 200, 200, 200, 429, 200)
}

// A limiter that keys by route belongs on chi's routes: in Use no route has been
// matched yet.
func TestChisRoutes(t *testing.T) {
	for name, row := range map[string]struct {
		mount    func(r chi.Router, l func(http.Handler) http.Handler)
		statuses []int
		lines    int
	}{
		"With": {func(r chi.Router, l func(http.Handler) http.Handler) {
			r.With(l).Get("/a/{id}", hello)
			r.With(l).Get("/b/{id}", hello)
		}, []int{200, 200, 429, 200}, 0},
		"Use": {func(r chi.Router, l func(http.Handler) http.Handler) {
			r.Use(l)
			r.Get("/a/{id}", hello)
			r.Get("/b/{id}", hello)
		}, []int{200, 200, 429, 429}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			l, err := core.New(core.Config{
				Log:   slog.New(slog.NewTextHandler(&log, nil)),
				Rules: []core.Rule{{Name: "r", Key: keyfuncs.Route(), Limits: []core.Limit{core.PerHour(2)}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			r := chi.NewRouter()
			row.mount(r, httplimit.Middleware(l))
			want(t, statuses(r, "/a/1", "/a/2", "/a/3", "/b/1"), row.statuses...)
			if strings.Count(log.String(), "level=ERROR") != row.lines {
				t.Errorf("logged, want %d lines: %s", row.lines, &log)
			}
		})
	}
}

// Chi's recovery middleware before the limiter.
func TestChisRecoverer(t *testing.T) {
	var panicked atomic.Bool
	l := httplimit.Middleware(limiter(t, core.Rule{
		Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(1)},
		Counts: func(_ core.Request, o core.Outcome) bool { panicked.Store(o.Panicked); return true },
	}))
	r := chi.NewRouter()
	r.Use(middleware.Recoverer, l)
	r.Get("/", func(http.ResponseWriter, *http.Request) { panic("handler") })
	want(t, statuses(r, "/", "/"), 500, 429)
	if !panicked.Load() {
		t.Error("the limiter was not told of the panic")
	}
}

// upgraded serves h behind a limiter that asks for the outcome, and returns a
// WebSocket address and the outcomes.
func upgraded(t *testing.T, h http.HandlerFunc) (url string, outcomes chan core.Outcome) {
	t.Helper()
	outcomes = make(chan core.Outcome, 10)
	l := limiter(t, core.Rule{
		Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(1)},
		Counts: func(_ core.Request, o core.Outcome) bool { outcomes <- o; return true },
	})
	s := httptest.NewServer(httplimit.Middleware(l)(h))
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http"), outcomes
}

func check(t *testing.T, outcomes chan core.Outcome, denied *http.Response) {
	t.Helper()
	if o := <-outcomes; o.Status != http.StatusSwitchingProtocols || o.Panicked {
		t.Errorf("the limiter learnt %+v", o)
	}
	if denied == nil || denied.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the second connection: %v", denied)
	}
}

func TestGorillaWebSocket(t *testing.T) {
	url, outcomes := upgraded(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := (&gorilla.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close() //nolint:errcheck // nothing more is to be said
		_ = c.WriteMessage(gorilla.TextMessage, []byte("hello"))
	})
	c, resp, err := gorilla.DefaultDialer.Dial(url, nil)
	if err != nil {
		t.Fatal(err, resp)
	}
	defer c.Close() //nolint:errcheck // nothing more is to be said
	if _, b, err := c.ReadMessage(); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	_, denied, _ := gorilla.DefaultDialer.Dial(url, nil)
	check(t, outcomes, denied)
}

func TestCoderWebSocket(t *testing.T) {
	url, outcomes := upgraded(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := coder.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow() //nolint:errcheck // nothing more is to be said
		_ = c.Write(r.Context(), coder.MessageText, []byte("hello"))
		_ = c.Close(coder.StatusNormalClosure, "")
	})
	c, _, err := coder.Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow() //nolint:errcheck // nothing more is to be said
	if _, b, err := c.Read(t.Context()); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	_, _, _ = c.Read(t.Context()) // the server's close
	_, denied, _ := coder.Dial(t.Context(), url, nil)
	check(t, outcomes, denied)
}
