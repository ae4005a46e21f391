package adaptertest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func outcomes(t *testing.T, a Adapter) {
	for _, row := range []struct {
		name    string
		handler Handler
		status  int // 0: whatever the framework makes of it
		replied int // status if what was written first has been sent; 0: the same
	}{
		{name: "a status", handler: func(c Context) error { return c.Respond(http.StatusForbidden, "no") }, status: 403},
		{name: "a status without a body", handler: func(c Context) error { return c.Respond(http.StatusNoContent, "") }, status: 204},
		{name: "a body without a status, then an error with one", handler: func(c Context) error {
			if err := c.Respond(http.StatusOK, "first"); err != nil {
				return err
			}
			return StatusError(http.StatusUnauthorized)
		}, status: 401, replied: 200},
		{name: "a failure, then a success", handler: func(c Context) error {
			if err := c.Respond(http.StatusUnauthorized, "first"); err != nil {
				return err
			}
			return c.Respond(http.StatusOK, "second")
		}, status: 200, replied: 401},
		{name: "a success, then a failure", handler: func(c Context) error {
			if err := c.Respond(http.StatusOK, "first"); err != nil {
				return err
			}
			return c.Respond(http.StatusUnauthorized, "second")
		}, status: 401, replied: 200},
		{name: "a redirect", handler: func(c Context) error {
			c.SetHeader("Location", "/home")
			return c.Respond(http.StatusFound, "")
		}, status: 302},
		{name: "nothing written", handler: func(Context) error { return nil }, status: 200},
		{name: "an error with a status", handler: func(Context) error { return StatusError(http.StatusUnauthorized) }, status: 401},
		{name: "a wrapped error with a status", handler: func(Context) error { return fmt.Errorf("login: %w", StatusError(http.StatusUnauthorized)) }},
		{name: "an error that the framework does not know", handler: func(Context) error { return ErrWrongPassword }, status: 500},
		{name: "a server error", handler: func(c Context) error { return c.Respond(http.StatusInternalServerError, "") }, status: 500},
	} {
		t.Run("the limiter learns what the client saw: "+row.name, func(t *testing.T) {
			if a.SendsAtOnce && row.replied != 0 {
				row.status = row.replied
			}
			w := hooktest.Watch(t)
			c := direct(t, a.Serve(t, App{Routes: []Route{{Method: http.MethodGet, Pattern: "/", Limits: []Limit{{Checker: w}}, Handler: row.handler}}}))
			got := c.get("/").status
			if row.status != 0 && got != row.status {
				t.Fatalf("the client saw %d, want %d", got, row.status)
			}
			if o := w.Next(t); o.Status != got || o.Panicked {
				t.Errorf("the limiter learnt %+v, the client saw %d", o, got)
			}
		})
	}

	for _, row := range []struct {
		name      string
		value     any
		recovered bool
	}{
		{"that is recovered", "ordinary", true}, {"that nobody recovers", "ordinary", false}, {"that aborts the handler", http.ErrAbortHandler, false},
	} {
		t.Run("a panic "+row.name+" counts, and goes on", func(t *testing.T) {
			if !row.recovered && !a.Panics {
				t.Skip("the server ends with a panic that nobody recovers")
			}
			w := hooktest.Watch(t)
			var outside []Middleware
			if row.recovered {
				outside = append(outside, Recovery)
			}
			c := direct(t, a.Serve(t, App{Outside: outside, Routes: []Route{
				{Method: http.MethodGet, Pattern: "/", Limits: []Limit{{Checker: w}}, Handler: func(Context) error { panic(row.value) }},
				{Method: http.MethodGet, Pattern: "/ok", Limits: []Limit{{Checker: w}}, Handler: ok},
			}}))
			got, err := c.try(http.MethodGet, "/", "")
			if row.recovered && (err != nil || got.status != http.StatusInternalServerError) || !row.recovered && err == nil {
				t.Errorf("the client saw %d, %v", got.status, err)
			}
			if o := w.Next(t); !o.Panicked || o.Status != http.StatusInternalServerError {
				t.Errorf("the limiter learnt %+v", o)
			}
			if got := c.get("/ok").status; got != http.StatusOK {
				t.Errorf("the next request: %d", got)
			}
		})
	}

	t.Run("errors that the application's error handler answers", func(t *testing.T) {
		for name, err := range map[string]error{"": ErrWrongPassword, ", wrapped": fmt.Errorf("login: %w", ErrWrongPassword)} {
			w := hooktest.Watch(t)
			c := direct(t, a.Serve(t, App{AnswersErrors: true, Limits: []Limit{{Checker: w}}, Routes: []Route{
				{Method: http.MethodGet, Pattern: "/", Handler: func(Context) error { return err }},
			}}))
			if got := c.get("/").status; got != http.StatusUnauthorized {
				t.Fatalf("the client saw %d", got)
			}
			if o := w.Next(t); o.Status != http.StatusUnauthorized {
				t.Errorf("the limiter learnt %+v%s", o, name)
			}
		}
	})

	t.Run("errors of a context that the application's error handler ignores", func(t *testing.T) {
		if !a.ReturnsErrors {
			t.Skip("handlers return no errors")
		}
		// If it was the context of a query, the client is still there and gets 200. That is no
		// success.
		for _, err := range []error{fmt.Errorf("database: %w", context.Canceled), context.DeadlineExceeded} {
			w := hooktest.Watch(t)
			c := direct(t, a.Serve(t, App{AnswersErrors: true, Limits: []Limit{{Checker: w}}, Routes: []Route{
				{Method: http.MethodGet, Pattern: "/", Handler: func(Context) error { return err }},
			}}))
			c.get("/")
			if o := w.Next(t); o.Status != core.StatusCanceled || !o.Canceled {
				t.Errorf("%v: the limiter learnt %+v", err, o)
			}
		}
	})

	t.Run("the outcome has the response's header", func(t *testing.T) {
		location := make(chan string, 1)
		l := hooktest.Limiter(t, core.Config{Rules: []core.Rule{{
			Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(100)},
			Counts: func(_ core.Request, o core.Outcome) bool {
				location <- o.Header("Location")
				return true
			},
		}}})
		c := direct(t, a.Serve(t, App{Routes: []Route{{Method: http.MethodGet, Pattern: "/", Limits: []Limit{{Checker: l}}, Handler: func(c Context) error {
			c.SetHeader("Location", "/login?err=1")
			return c.Respond(http.StatusFound, "")
		}}}}))
		c.get("/")
		if got := <-location; !strings.HasPrefix(got, "/login") {
			t.Errorf("Location is %q", got)
		}
	})
}
