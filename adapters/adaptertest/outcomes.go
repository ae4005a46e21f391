package adaptertest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// watched is a limiter that gives every request back, and tells what became of
// each.
type watched struct {
	*core.Limiter
	done chan core.Outcome
}

func newWatched(t *testing.T) *watched {
	w := &watched{done: make(chan core.Outcome, 100)}
	w.Limiter = limiter(t, core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(100)},
		Counts: func(o core.Outcome) bool {
			o.Header = nil // not to be used later
			w.done <- o
			return false
		},
	}}})
	return w
}

func (w *watched) next(t *testing.T) core.Outcome {
	t.Helper()
	select {
	case o := <-w.done:
		return o
	case <-time.After(timeout):
		t.Fatal("the limiter was not told the outcome")
		return core.Outcome{}
	}
}

func outcomes(t *testing.T, a Adapter) {
	for _, row := range []struct {
		name    string
		handler Handler
		status  int
	}{
		{"a status", func(c Context) error { return c.Respond(http.StatusForbidden, "no") }, 403},
		{"a status without a body", func(c Context) error { return c.Respond(http.StatusNoContent, "") }, 204},
		{"a body without a status, then one", func(c Context) error {
			if err := c.Respond(http.StatusOK, "first"); err != nil {
				return err
			}
			return StatusError(http.StatusUnauthorized)
		}, 200},
		{"a redirect", func(c Context) error {
			c.SetHeader("Location", "/home")
			return c.Respond(http.StatusFound, "")
		}, 302},
		{"nothing written", func(Context) error { return nil }, 200},
		{"78: an error with a status", func(Context) error { return StatusError(http.StatusUnauthorized) }, 401},
		{"a server error", func(c Context) error { return c.Respond(http.StatusInternalServerError, "") }, 500},
	} {
		t.Run("the limiter learns what the client saw: "+row.name, func(t *testing.T) {
			if !a.Flushes && strings.HasPrefix(row.name, "a body without") {
				return // nothing is sent before the handler has ended
			}
			w := newWatched(t)
			c := direct(t, a.Serve(t, App{Routes: []Route{{Method: http.MethodGet, Pattern: "/", Limits: []Limit{{Checker: w}}, Handler: row.handler}}}))
			if got := c.get("/").status; got != row.status {
				t.Fatalf("the client saw %d, want %d", got, row.status)
			}
			if o := w.next(t); o.Status != row.status || o.Panicked {
				t.Errorf("the limiter learnt %+v, want status %d", o, row.status)
			}
		})
	}

	for _, row := range []struct {
		value     any
		recovered bool
	}{{"ordinary", true}, {"ordinary", false}, {http.ErrAbortHandler, false}} {
		if !row.recovered && !a.Panics {
			continue
		}
		t.Run("82: a panic counts, and goes on", func(t *testing.T) {
			w := newWatched(t)
			c := direct(t, a.Serve(t, App{Recover: row.recovered, Routes: []Route{
				{Method: http.MethodGet, Pattern: "/", Limits: []Limit{{Checker: w}}, Handler: func(Context) error { panic(row.value) }},
				{Method: http.MethodGet, Pattern: "/ok", Limits: []Limit{{Checker: w}}, Handler: ok},
			}}))
			got, err := c.try(http.MethodGet, "/", "")
			if row.recovered && (err != nil || got.status != http.StatusInternalServerError) || !row.recovered && err == nil {
				t.Errorf("the client saw %d, %v", got.status, err)
			}
			if o := w.next(t); !o.Panicked || o.Status != http.StatusInternalServerError {
				t.Errorf("the limiter learnt %+v", o)
			}
			if got := c.get("/ok").status; got != http.StatusOK {
				t.Errorf("the next request: %d", got)
			}
		})
	}

	t.Run("the outcome has the response's header", func(t *testing.T) {
		location := make(chan string, 1)
		l := limiter(t, core.Config{Rules: []core.Rule{{
			Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(100)},
			Counts: func(o core.Outcome) bool {
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
