package fibertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func nothing(Ctx) error { return nil }

// answers is a handler that writes a status and a body.
func answers(status int, body string) func(Ctx) error {
	return func(c Ctx) error {
		c.RequestCtx().SetStatusCode(status)
		c.RequestCtx().SetBodyString(body)
		return nil
	}
}

func endsOfAContext(t *testing.T, f Fiber) {
	// late is a handler behind the limiter whose deadline has passed.
	late := func(then func(Ctx) error) func(Ctx) error {
		return func(c Ctx) error {
			ctx, cancel := context.WithDeadline(c.Context(), time.Unix(0, 0))
			cancel()
			c.SetContext(ctx)
			return then(c)
		}
	}
	cancel := func() {}
	for _, row := range []struct {
		name            string
		before, handler func(Ctx) error
		status          int
	}{
		{"a deadline behind the limiter, nothing written", nil, late(nothing), core.StatusCanceled},
		{"a deadline behind the limiter, a failure", nil, late(answers(http.StatusUnauthorized, "no")), http.StatusUnauthorized},
		{"a deadline behind the limiter, a failure without a body", nil, late(answers(http.StatusUnauthorized, "")), http.StatusUnauthorized},
		{"a deadline behind the limiter, a stream", nil, late(func(c Ctx) error {
			c.RequestCtx().SetBodyStream(strings.NewReader("welcome"), -1)
			return nil
		}), http.StatusOK},
		{"a deadline behind the limiter, a hijack", nil, late(func(c Ctx) error {
			c.RequestCtx().Hijack(func(net.Conn) {})
			return nil
		}), http.StatusSwitchingProtocols},
		{"a deadline behind the limiter, a success", nil, late(answers(http.StatusOK, "welcome")), http.StatusOK},
		{"Fiber's own middleware for timeouts", nil, f.Timeout(func(c Ctx) error {
			<-c.Context().Done()
			return c.Context().Err()
		}, time.Millisecond), http.StatusRequestTimeout},
		{"a context behind the limiter that is cancelled when the handler returns", nil, func(c Ctx) error {
			ctx, cancel := context.WithCancel(c.Context())
			defer cancel()
			c.SetContext(ctx)
			return nil
		}, http.StatusOK},
		{"a context before the limiter that has ended, a success", func(c Ctx) error {
			var ctx context.Context
			ctx, cancel = context.WithCancel(c.Context())
			c.SetContext(ctx)
			return c.Next()
		}, func(c Ctx) error {
			cancel()
			return answers(http.StatusOK, "welcome")(c)
		}, core.StatusCanceled},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := hooktest.Watch(t)
			get(t, serve(t, f, App{Before: row.before, Limiter: w, Handler: row.handler}))
			if o := w.Next(t); o.Status != row.status || o.Canceled != (row.status == core.StatusCanceled) {
				t.Errorf("the limiter learnt %+v, want status %d", o, row.status)
			}
		})
	}
}

// A handler that stops because the server shuts down has not logged anybody in.
func shutdown(t *testing.T, f Fiber) {
	for name, row := range map[string]struct {
		write  func(c Ctx) error
		status int
	}{"nothing written": {nothing, core.StatusCanceled}, "a success": {answers(http.StatusOK, "welcome"), http.StatusOK}} {
		w := hooktest.Watch(t)
		entered := make(chan struct{})
		s := f.New(App{Limiter: w, Handler: func(c Ctx) error {
			close(entered)
			<-c.RequestCtx().Done()
			return row.write(c)
		}})
		ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served, answered := make(chan error, 1), make(chan error, 1)
		go func() { served <- s.Listener(ln) }()
		go func() {
			_, _, err := fasthttp.Get(nil, "http://"+ln.Addr().String()+"/")
			answered <- err
		}()
		<-entered
		if err := errors.Join(s.ShutdownWithTimeout(timeout), <-served, <-answered); err != nil {
			t.Error(err)
		}
		if o := w.Next(t); o.Status != row.status || o.Canceled != (row.status == core.StatusCanceled) {
			t.Errorf("%s: the limiter learnt %+v", name, o)
		}
	}
}

// Unit tests of handlers use contexts that no server has made.
func withoutAServer(t *testing.T, f Fiber) {
	w := hooktest.Watch(t)
	Program(f.New(App{Path: "/api", Limiter: w, Handler: nothing}).Handler())()
	if o := w.Next(t); o.Status != http.StatusOK || o.Canceled {
		t.Errorf("the limiter learnt %+v", o)
	}
}

// A handler that closes the connection without a response has not logged anybody in.
func closedConnection(t *testing.T, f Fiber) {
	w := hooktest.Watch(t)
	get(t, serve(t, f, App{Limiter: w, Handler: func(c Ctx) error { return c.RequestCtx().Conn().Close() }}))
	if o := w.Next(t); o.Status != core.StatusCanceled || !o.Canceled {
		t.Errorf("the limiter learnt %+v", o)
	}
}

// A rule that learns the outcome reads the context that the request had before the handlers: one
// that a handler has set may have ended, or be another's.
func contextOfAnOutcome(t *testing.T, f Fiber) {
	type key struct{}
	read := make(chan any, 2)
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(1000)},
		Counts: func(r core.Request, _ core.Outcome) bool {
			read <- r.Value(key{})
			return true
		},
	}}}))
	set := func(c Ctx, value string) { c.SetContext(context.WithValue(c.Context(), key{}, value)) }
	get(t, serve(t, f, App{
		Before:  func(c Ctx) error { set(c, "before"); return c.Next() },
		Limiter: l,
		Handler: func(c Ctx) error { set(c, "the handler's"); return nil },
	}))
	if got := <-read; got != "before" {
		t.Errorf("the rule reads the context with %v", got)
	}
}

// If the application's ErrorHandler returns an error, the client gets 500, as without the
// limiter, and so does the outcome.
func failingErrorHandler(t *testing.T, f Fiber) {
	for name, row := range map[string]struct {
		answer func(Ctx, error) error
		status int
		body   string
	}{
		"without a word":        {func(Ctx, error) error { return errors.New("no template") }, 500, "Internal Server Error"},
		"with its own error":    {func(_ Ctx, err error) error { return err }, 500, "Internal Server Error"},
		"after a success":       {func(c Ctx, err error) error { return errors.Join(answers(200, "welcome")(c), err) }, 500, "welcome"},
		"and one that does not": {func(c Ctx, _ error) error { return answers(401, "no")(c) }, 401, "no"},
	} {
		w := hooktest.Watch(t)
		for _, by := range []core.Checker{nil, w} {
			status, body := get(t, serve(t, f, App{ErrorHandler: row.answer, Limiter: by, Handler: func(Ctx) error { return errors.New("wrong password") }}))
			if status != row.status || body != row.body {
				t.Errorf("%s: limited %v: status %d, body %q, want %d, %q", name, by != nil, status, body, row.status, row.body)
			}
		}
		if o := w.Next(t); o.Status != row.status || o.Panicked || o.Canceled {
			t.Errorf("%s: the limiter learnt %+v", name, o)
		}
	}
}

// The panic keeps its value.
func panics(t *testing.T, f Fiber) {
	w := hooktest.Watch(t)
	request := Program(f.New(App{Path: "/api", Limiter: w, Handler: func(c Ctx) error {
		_ = answers(http.StatusOK, "welcome")(c)
		panic("the handler's")
	}}).Handler())
	for range 2 {
		func() {
			defer func() {
				if v := recover(); v != "the handler's" {
					t.Errorf("recovered %v", v)
				}
			}()
			request()
		}()
		if o := w.Next(t); !o.Panicked || o.Status != http.StatusInternalServerError || o.Canceled {
			t.Errorf("the limiter learnt %+v", o)
		}
	}
}

// fasthttp writes a multipart form anew after it has parsed it. A form with its boundary in a
// part is refused then, because that may have made other parts. If the application parses the
// forms itself, the body is as it was received, and a key function reads it.
func boundaryInAPart(t *testing.T, f Fiber) {
	for keeps, want := range map[bool]string{true: "[200 429 200]", false: "[400 400 400]"} {
		conn, r := dialed(t, serve(t, f, App{KeepsForms: keeps, Limiter: hooktest.ByKey(t, keyfuncs.PostField("username"), 1), Handler: nothing}))
		var got []int
		for _, name := range []string{"alice", "alice", "bob"} {
			status, _ := exchanges(t, conn, r, post("/", "multipart/form-data; boundary=XX",
				"--XX\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\n"+name+"\r\n"+
					"--XX\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\na--XXb\r\n--XX--\r\n"))
			got = append(got, status)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("the application parses forms itself: %t: statuses %v, want %v", keeps, got, want)
		}
	}
}
