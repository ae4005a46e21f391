package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// slotted is a limiter with one slot, which tells when a request has been settled.
type slotted struct {
	*inflight.Limiter
	done chan struct{}
}

func newSlotted() *slotted {
	return &slotted{core.Must(inflight.New(inflight.Config{Name: "r", Max: 1, Key: keyfuncs.Static("")})), make(chan struct{}, 100)}
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
		if s.Held() == 0 {
			return
		}
	}
	t.Error("the slot is held for ever")
}

func (s *slotted) wait(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(timeout):
		t.Fatal("the request was not settled")
	}
}

// streamOf sends a request and returns the response when its first byte has arrived.
func streamOf(t *testing.T, addr string, header ...string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := direct(t, addr).http.Do(req)
	if err == nil {
		_, err = resp.Body.Read(make([]byte, 1))
	}
	return resp, err
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
			s, begun, end := newSlotted(), make(chan struct{}), make(chan struct{})
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
			if denied.status != http.StatusTooManyRequests || denied.header.Get("Retry-After") != "1" || denied.header.Get("RateLimit") != "" {
				t.Errorf("the second request: %d, %v", denied.status, denied.header)
			}
			close(end)
			<-first
			s.frees(t)
		})
	}
	for _, hangsUp := range []bool{false, true} {
		t.Run(fmt.Sprintf("a stream frees its slot when it has been sent, or its client hangs up: %t", hangsUp), func(t *testing.T) {
			if !a.Flushes {
				t.Skip("a handler cannot send a part of a response")
			}
			s, end := newSlotted(), make(chan struct{})
			addr := a.Serve(t, App{Limits: []Limit{{Checker: s}}, Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error {
				parts := 0
				return c.Stream(func() string {
					if parts++; parts == 2 {
						<-end
					}
					if parts == 1 || hangsUp && parts < 10_000 {
						return strings.Repeat("part ", 1000)
					}
					return ""
				})
			}}}})
			resp, err := streamOf(t, addr)
			if err != nil {
				t.Fatal(err)
			}
			if a.SendsAtOnce && s.Held() != 1 { // otherwise the handler has returned
				t.Error("the slot is free while the stream is sent")
			}
			if hangsUp {
				_ = resp.Body.Close()
			}
			close(end)
			if _, err := io.ReadAll(resp.Body); err != nil && !hangsUp {
				t.Error(err)
			}
			_ = resp.Body.Close()
			s.frees(t)
		})
	}
	t.Run("a connection that was taken over holds no slot when the handler has returned", func(t *testing.T) {
		if !a.Hijacks {
			t.Skip("a handler cannot take over the connection")
		}
		s, end := newSlotted(), make(chan struct{})
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
		s.frees(t)
		close(end)
		if _, err := io.ReadAll(conn); err != nil {
			t.Error(err)
		}
	})
}
