package adaptertest

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// slotted is a limiter with one slot, which tells when a request has been settled.
type slotted struct {
	*core.Limiter
	done chan struct{}
}

func newSlotted(t *testing.T) *slotted {
	return &slotted{limiter(t, core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.InFlight(1)},
	}}}), make(chan struct{}, 100)}
}

func (s *slotted) Settle(r core.Request, d core.Decision, o core.Outcome) {
	s.Limiter.Settle(r, d, o)
	s.done <- struct{}{}
}

// frees waits until the slot is free.
func (s *slotted) frees(t *testing.T) {
	t.Helper()
	wait := time.NewTicker(time.Millisecond)
	defer wait.Stop()
	for end := time.Now().Add(timeout); time.Now().Before(end); <-wait.C {
		if s.free(t) {
			return
		}
	}
	t.Error("the slot is held for ever")
}

func (s *slotted) free(t *testing.T) bool {
	t.Helper()
	d, err := s.Peek(t.Context(), 1, core.Hit{Rule: "r"})
	return err == nil && d.Allowed
}

func (s *slotted) wait(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(timeout):
		t.Fatal("the request was not settled")
	}
}

func inFlight(t *testing.T, a Adapter) {
	for _, row := range []struct {
		name string
		end  func(c Context) error
	}{
		{"a response", func(c Context) error { return c.Respond(http.StatusOK, "done") }},
		{"an error", func(Context) error { return errors.New("broken") }},
		{"a panic", func(Context) error { panic(http.ErrAbortHandler) }},
	} {
		t.Run("a request holds its slot until "+row.name, func(t *testing.T) {
			if row.name == "a panic" && !a.Panics {
				t.Skip("a panic ends the program")
			}
			s, begun, end := newSlotted(t), make(chan struct{}), make(chan struct{})
			c := direct(t, a.Serve(t, App{Outside: []Middleware{Recovery}, Limits: []Limit{{Checker: s}}, Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error {
				close(begun)
				<-end
				return row.end(c)
			}}}}))
			first := make(chan struct{})
			go func() {
				defer close(first)
				_, _ = c.try(http.MethodGet, "/", "")
			}()
			<-begun
			denied := c.get("/")
			if denied.status != http.StatusTooManyRequests || denied.header.Get("Retry-After") != "1" || denied.header.Get("RateLimit") != `"r";r=0;t=1` || denied.header.Get("RateLimit-Policy") != `"r";q=1` {
				t.Errorf("the second request: %d, %v", denied.status, denied.header)
			}
			close(end)
			<-first
			s.frees(t)
		})
	}
	t.Run("a connection that was taken over holds its slot until it is closed", func(t *testing.T) {
		if !a.Hijacks {
			t.Skip("a handler cannot take over the connection")
		}
		s, end := newSlotted(t), make(chan struct{})
		addr := a.Serve(t, App{Limits: []Limit{{Checker: s}}, Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error {
			return c.Hijack("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nhello", end)
		}}}})
		conn, err := dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // of no interest any more
		_ = conn.SetDeadline(time.Now().Add(timeout))
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		s.wait(t)
		if s.free(t) {
			t.Error("the slot is free while the connection is open")
		}
		close(end)
		if _, err := io.ReadAll(conn); err != nil {
			t.Error(err)
		}
		s.frees(t)
	})
}
