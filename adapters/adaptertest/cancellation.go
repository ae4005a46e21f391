package adaptertest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

// A request whose context ends before a response is begun did not succeed, whatever the handler
// makes of it.
func cancellation(t *testing.T, a Adapter) {
	t.Run("clients that go", func(t *testing.T) {
		if !a.SeesCancel {
			t.Skip("the server does not tell handlers that a client has gone")
		}
		clientsThatGo(t, a)
	})
	deadlines(t, a)
}

// gone is a handler that waits until its client has gone.
func gone(then Handler) (h Handler, entered chan struct{}) {
	entered = make(chan struct{}, 1)
	return func(c Context) error {
		entered <- struct{}{}
		<-c.Context().Done()
		return then(c)
	}, entered
}

func nothing(Context) error { return nil }

func clientsThatGo(t *testing.T, a Adapter) {
	for _, row := range []struct {
		name            string
		then            Handler
		outside, inside []Middleware
	}{
		{name: "writes nothing", then: nothing},
		{name: "returns the context's error", then: func(c Context) error { return fmt.Errorf("database: %w", c.Context().Err()) }},
		{name: "writes a success", then: ok},
		{name: "writes a body alone", then: func(c Context) error { return c.Respond(http.StatusOK, "") }},
		{name: "writes a failure", then: func(c Context) error { return c.Respond(http.StatusUnauthorized, "no") }},
		{name: "writes a server error", then: func(c Context) error { return c.Respond(http.StatusInternalServerError, "") }},
		{name: "writes nothing, with the framework's middlewares outside", then: nothing, outside: []Middleware{Logging, Recovery}},
		{name: "writes nothing, with the framework's middlewares inside", then: nothing, inside: []Middleware{Logging, Recovery}},
		{name: "writes nothing, behind http.TimeoutHandler outside", then: nothing, outside: []Middleware{PatientTimeout}},
		{name: "writes nothing, behind http.TimeoutHandler inside", then: nothing, inside: []Middleware{PatientTimeout}},
	} {
		for _, protocol := range []string{"HTTP/1", "HTTP/2"} {
			t.Run(fmt.Sprintf("%s: the client goes, and the handler %s", protocol, row.name), func(t *testing.T) {
				mustFit(t, a, row.outside, row.inside)
				w := hooktest.Watch(t)
				h, entered := gone(row.then)
				app := App{Limits: []Limit{{Checker: w}}, Outside: row.outside, Inside: row.inside, Routes: []Route{{Method: http.MethodPost, Pattern: "/", Handler: h}}}
				leave(t, a, protocol, app, entered)
				if o := w.Next(t); !o.Canceled || o.Status != core.StatusCanceled || o.Panicked {
					t.Errorf("the limiter learnt %+v", o)
				}
			})
		}
	}

	t.Run("a response that was begun before the client went is what it was", func(t *testing.T) {
		for _, protocol := range []string{"HTTP/1", "HTTP/2"} {
			w := hooktest.Watch(t)
			begun := make(chan struct{})
			app := App{Limits: []Limit{{Checker: w}}, Routes: []Route{{Method: http.MethodPost, Pattern: "/", Handler: func(c Context) error {
				parts := 0
				return c.Stream(func() string {
					if parts++; parts == 1 {
						return "part"
					}
					close(begun)
					<-c.Context().Done()
					return ""
				})
			}}}}
			leave(t, a, protocol, app, begun)
			if o := w.Next(t); o.Canceled || o.Status != http.StatusOK {
				t.Errorf("%s: the limiter learnt %+v", protocol, o)
			}
		}
	})
}

// mustFit skips a test whose middlewares have no safe place in the framework.
func mustFit(t *testing.T, a Adapter, outside, inside []Middleware) {
	t.Helper()
	handlers := []Middleware{Timeout, PatientTimeout}
	has := func(ms []Middleware) bool {
		return slices.ContainsFunc(ms, func(m Middleware) bool { return slices.Contains(handlers, m) })
	}
	if has(outside) && !a.TimeoutOutside || has(inside) && !a.TimeoutInside {
		t.Skip("http.TimeoutHandler has no safe place there")
	}
}

// leave sends a request to the application and goes as soon as the handler says that it has begun.
func leave(t *testing.T, a Adapter, protocol string, app App, begun <-chan struct{}) {
	t.Helper()
	var addr string
	var client *http.Client
	if protocol == "HTTP/2" {
		addr, client = "https://"+a.ServeHTTP2(t, app), newHTTP2Client(t)
	} else {
		plain := direct(t, a.Serve(t, app))
		addr, client = "http://"+plain.addr, plain.http
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, addr+"/", http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := client.Do(req); err == nil {
			<-ctx.Done()
			_ = resp.Body.Close()
		}
	}()
	<-begun
	cancel()
	<-done
}

func deadlines(t *testing.T, a Adapter) {
	send := func(t *testing.T, h Handler, outside, inside []Middleware) (int, core.Outcome) {
		w := hooktest.Watch(t)
		c := direct(t, a.Serve(t, App{Limits: []Limit{{Checker: w}}, Outside: outside, Inside: inside, Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: h}}}))
		return c.get("/").status, w.Next(t)
	}
	for _, m := range []Middleware{Deadline, Timeout} {
		t.Run(fmt.Sprintf("a %s outside passes", m), func(t *testing.T) {
			mustFit(t, a, []Middleware{m}, nil)
			for name, then := range map[string]Handler{
				"nothing": nothing, "a success": ok, "the context's error": func(c Context) error { return c.Context().Err() },
			} {
				h, _ := gone(then)
				if _, o := send(t, h, []Middleware{m}, nil); !o.Canceled || o.Status != core.StatusCanceled {
					t.Errorf("the handler writes %s: the limiter learnt %+v", name, o)
				}
			}
		})
		t.Run(fmt.Sprintf("a %s inside passes", m), func(t *testing.T) {
			mustFit(t, a, nil, []Middleware{m})
			h, _ := gone(nothing)
			if _, o := send(t, h, nil, []Middleware{m}); o.Status < 400 || o.Canceled != (o.Status == core.StatusCanceled) {
				t.Errorf("the limiter learnt %+v", o)
			}
		})
	}
	for name, h := range map[string]Handler{"nothing": nothing, "a success": ok} {
		for _, row := range []struct {
			where           string
			outside, inside []Middleware
		}{
			{"deadline outside", []Middleware{PatientDeadline}, nil},
			{"deadline inside", nil, []Middleware{PatientDeadline}}, // it cancels its context when the handler returns
			{"timeout outside", []Middleware{PatientTimeout}, nil},
			{"timeout inside", nil, []Middleware{PatientTimeout}},
		} {
			t.Run(fmt.Sprintf("a %s does not pass, and the handler writes %s", row.where, name), func(t *testing.T) {
				mustFit(t, a, row.outside, row.inside)
				if status, o := send(t, h, row.outside, row.inside); o.Canceled || o.Status != http.StatusOK || status != http.StatusOK {
					t.Errorf("the client saw %d, the limiter learnt %+v", status, o)
				}
			})
		}
	}
}
