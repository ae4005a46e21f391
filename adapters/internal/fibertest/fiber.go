// Package fibertest has tests that the adapters of both majors of Fiber pass, beside the table
// of adaptertest. It knows neither major, so that it can be in the root module.
package fibertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/core"
)

// timeout ends what hangs; nothing is measured by it.
const timeout = 20 * time.Second

// Ctx is the context of a request as both majors have it, with the names of Fiber v3.
type Ctx interface {
	Next() error
	Params(name string, defaultValue ...string) string
	Context() context.Context
	SetContext(ctx context.Context)
	RequestCtx() *fasthttp.RequestCtx
}

// App is an application in no major's words.
type App struct {
	BodyLimit  int  // 0: Fiber's
	Streams    bool // bodies are streamed
	KeepsForms bool // fasthttp does not parse multipart forms
	// ErrorHandler is the application's; nil: Fiber's.
	ErrorHandler func(c Ctx, err error) error
	Path         string            // "": /
	Before       func(c Ctx) error // a middleware before the limiter; nil: none
	Limiter      core.Checker      // nil: none
	Handler      func(c Ctx) error
}

// Server is an application of Fiber.
type Server interface {
	Handler() fasthttp.RequestHandler
	Listener(l net.Listener) error
	ShutdownWithTimeout(d time.Duration) error
	Server() *fasthttp.Server
}

// Shutdown stops a server that has been told to listen. done gets what Listener returns.
// fasthttp looks for open connections ten times a second: it is asked when all are closed.
func Shutdown(t *testing.T, s Server, done <-chan error) {
	t.Helper()
	for end := time.Now().Add(100 * time.Millisecond); s.Server().GetOpenConnectionsCount() > 0 && time.Now().Before(end); {
		<-time.After(time.Millisecond)
	}
	if err := errors.Join(s.ShutdownWithTimeout(timeout), <-done); err != nil {
		t.Error(err)
	}
}

// Fiber is one of the majors.
type Fiber struct {
	New func(App) Server
	// Timeout is Fiber's own middleware for timeouts around a handler.
	Timeout func(h func(Ctx) error, after time.Duration) func(Ctx) error
}

// Program returns a function that serves one request to GET /api: see adaptertest.Program.
func Program(h fasthttp.RequestHandler) (serve func()) {
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("/api")
	return func() {
		ctx.Response.Reset()
		ctx.ResetUserValues()
		h(&ctx)
	}
}

// Run runs the tests.
func Run(t *testing.T, f Fiber) {
	for _, row := range []struct {
		name string
		test func(*testing.T, Fiber)
	}{
		{"which ends of a context count as canceled", endsOfAContext},
		{"an empty response during a shutdown counts as canceled", shutdown},
		{"a context without a server is not canceled", withoutAServer},
		{"a connection that the handler closes", closedConnection},
		{"the context of an outcome", contextOfAnOutcome},
		{"a failing error handler counts as 500", failingErrorHandler},
		{"a panic counts as a failure and is not recovered", panics},
		{"a boundary in a part of a form", boundaryInAPart},
		{"a client that waits for Continue is denied after its body", waitsForContinue},
		{"the handler gets the whole body", whole},
		{"a body above BodyLimit is refused", tooLong},
		{"an unread body is not read as a request", unread},
		{"what a handler does with a body that it does not need", notNeeded},
		{"a stream that was read before is refused", readBefore},
	} {
		t.Run(row.name, func(t *testing.T) { row.test(t, f) })
	}
}

// serve serves an application on a free port of 127.0.0.1.
func serve(t *testing.T, f Fiber, app App) (addr string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, done := f.New(app), make(chan error, 1)
	go func() { done <- s.Listener(l) }()
	t.Cleanup(func() { Shutdown(t, s, done) })
	return l.Addr().String()
}

const formType = "application/x-www-form-urlencoded"

// get asks an application for / and returns the response, "0" if there is none.
func get(t *testing.T, addr string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// exchanges sends a request on a connection and returns the response.
func exchanges(t *testing.T, conn net.Conn, r *bufio.Reader, raw string) (status int, body string) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(timeout))
	_, _ = io.WriteString(conn, raw)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// post is a request with a body.
func post(path, contentType, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", path, contentType, len(body), body)
}

func dialed(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, bufio.NewReader(conn)
}
