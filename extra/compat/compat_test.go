// Package compat tests the adapters and stores beside routers and libraries that users combine with them.
package compat

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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

// A limiter that keys by route belongs on chi's routes: in Use no route has been matched yet.
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

// A WebSocket counts as any request, and the limiter learns its outcome.
func TestGorillaWebSocket(t *testing.T) {
	outcomes := make(chan core.Outcome, 1)
	l := limiter(t, core.Rule{
		Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(1)},
		Counts: func(_ core.Request, o core.Outcome) bool { outcomes <- o; return true },
	})
	s := httptest.NewServer(httplimit.Middleware(l)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := (&gorilla.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close() //nolint:errcheck // nothing more is to be said
		_ = c.WriteMessage(gorilla.TextMessage, []byte("hello"))
	})))
	defer s.Close()
	url := "ws" + strings.TrimPrefix(s.URL, "http")
	c, resp, err := gorilla.DefaultDialer.Dial(url, nil)
	if err != nil {
		t.Fatal(err, resp)
	}
	defer c.Close() //nolint:errcheck // nothing more is to be said
	if _, b, err := c.ReadMessage(); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	if o := <-outcomes; o.Status != http.StatusSwitchingProtocols || o.Panicked {
		t.Errorf("the limiter learnt %+v", o)
	}
	if _, denied, _ := gorilla.DefaultDialer.Dial(url, nil); denied == nil || denied.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the second connection: %v", denied)
	}
}
