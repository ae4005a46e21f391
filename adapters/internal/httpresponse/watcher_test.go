package httpresponse_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/adapters/internal/httpresponse"
	"github.com/floodgate-go/floodgate/core"
)

// server is a response writer that can do everything that a server's can.
type server struct {
	*httptest.ResponseRecorder
	hijackErr error
	copied    bool
}

func (s *server) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, s.hijackErr }

func (s *server) ReadFrom(r io.Reader) (int64, error) {
	s.copied = true
	return io.Copy(s.ResponseRecorder, r)
}

// bare hides what a writer can do beside the three methods of
// http.ResponseWriter, and shows it to http.ResponseController.
type bare struct{ http.ResponseWriter }

func (b bare) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Handlers use the writer in several ways, one after the other.
func TestTheOutcomeHasTheFirstStatusThatWasSent(t *testing.T) {
	status := func(code int) func(http.ResponseWriter) { return func(w http.ResponseWriter) { w.WriteHeader(code) } }
	write := func(w http.ResponseWriter) { _, _ = w.Write([]byte("x")) }
	empty := func(w http.ResponseWriter) { _, _ = w.Write(nil) }
	flush := func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
	readFrom := func(w http.ResponseWriter) { _, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("x")) }
	hijack := func(w http.ResponseWriter) { _, _, _ = http.NewResponseController(w).Hijack() }
	for _, row := range []struct {
		name      string
		do        []func(http.ResponseWriter)
		hijackErr error
		copies    bool
		want      int
	}{
		{name: "nothing", want: 200},
		{name: "a status", do: []func(http.ResponseWriter){status(404)}, want: 404},
		{name: "a body", do: []func(http.ResponseWriter){write}, want: 200},
		{name: "an empty body", do: []func(http.ResponseWriter){empty}, want: 200},
		{name: "a status and a body", do: []func(http.ResponseWriter){status(401), write}, want: 401},
		{name: "a body and a superfluous status", do: []func(http.ResponseWriter){write, status(500)}, want: 200},
		{name: "two statuses", do: []func(http.ResponseWriter){status(401), status(200)}, want: 401},
		{name: "a flush", do: []func(http.ResponseWriter){flush}, want: 200},
		{name: "a flush and a superfluous status", do: []func(http.ResponseWriter){flush, status(401), write}, want: 200},
		{name: "a status and a flush", do: []func(http.ResponseWriter){status(401), flush}, want: 401},
		{name: "a copy", do: []func(http.ResponseWriter){readFrom}, copies: true, want: 200},
		{name: "a copy and a superfluous status", do: []func(http.ResponseWriter){readFrom, status(401)}, copies: true, want: 200},
		{name: "a status and a copy", do: []func(http.ResponseWriter){status(401), readFrom}, copies: true, want: 401},
		{name: "early hints", do: []func(http.ResponseWriter){status(103)}, want: 200},
		{name: "early hints and a status", do: []func(http.ResponseWriter){status(103), status(100), status(199), status(401)}, want: 401},
		{name: "early hints and a body", do: []func(http.ResponseWriter){status(103), write}, want: 200},
		{name: "another protocol", do: []func(http.ResponseWriter){status(101), status(200)}, want: 101},
		{name: "a hijack", do: []func(http.ResponseWriter){hijack}, want: 101},
		{name: "a hijack and a superfluous status", do: []func(http.ResponseWriter){hijack, status(401), write}, want: 101},
		{name: "a status and a hijack", do: []func(http.ResponseWriter){status(401), hijack}, want: 401},
		{name: "a hijack that fails", do: []func(http.ResponseWriter){hijack}, hijackErr: errors.ErrUnsupported, want: 200},
		{name: "a hijack that fails and a status", do: []func(http.ResponseWriter){hijack, status(401)}, hijackErr: errors.ErrUnsupported, want: 401},
	} {
		for _, as := range []string{"another's", "HTTP/1", "below"} {
			for _, gone := range []bool{false, true} {
				if as == "below" && row.copies {
					continue // a writer that hides this cannot copy
				}
				ctx, cancel := context.WithCancel(t.Context())
				s := &server{ResponseRecorder: httptest.NewRecorder(), hijackErr: row.hijackErr}
				watcher := httpresponse.NewWatcher(ctx)
				var w http.ResponseWriter = s
				switch as {
				case "below":
					w = bare{s}
				case "HTTP/1":
					w = server1{server2{s.ResponseRecorder}, s}
				}
				w = watcher.Wrap(w)
				if gone {
					cancel()
				}
				for _, do := range row.do {
					do(w)
				}
				got := watcher.Outcome(ctx, false, nil, s.Header().Get)
				want := row.want
				if gone {
					want = core.StatusCanceled
				}
				if got.Status != want || got.Canceled != gone || got.Panicked {
					t.Errorf("%s, a writer as %s, gone %v: the limiter learns %+v, want %d", row.name, as, gone, got, want)
				}
				if s.copied != row.copies {
					t.Errorf("%s, a writer as %s: the server copies: %v", row.name, as, s.copied)
				}
				cancel()
			}
		}
	}
}

// net/http panics and sends nothing.
func TestAnInvalidStatusIsNotRecorded(t *testing.T) {
	r := httptest.NewRecorder
	type row struct {
		code int
		w    http.ResponseWriter
	}
	for _, row := range []row{{0, r()}, {-1, r()}, {99, r()}, {1000, r()}, {1000, nothing{r()}}, {1000, server1{server2{r()}, &server{ResponseRecorder: r()}}}} {
		code, writer := row.code, row.w
		watcher := httpresponse.NewWatcher(t.Context())
		w := watcher.Wrap(writer)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("WriteHeader(%d) does not panic", code)
				}
			}()
			w.WriteHeader(code)
		}()
		if o := watcher.Outcome(t.Context(), true, nil, nil); o.Status != http.StatusInternalServerError || !o.Panicked {
			t.Errorf("WriteHeader(%d): the limiter learns %+v", code, o)
		}
		w.WriteHeader(http.StatusTeapot) // somebody has recovered
		if o := watcher.Outcome(t.Context(), false, nil, nil); o.Status != http.StatusTeapot {
			t.Errorf("WriteHeader(%d), and then another: the limiter learns %+v", code, o)
		}
	}
}

// It does so if the handler has written nothing.
func TestAContextErrorOfTheHandlerCountsAsCanceled(t *testing.T) {
	watcher := httpresponse.NewWatcher(t.Context())
	for err, canceled := range map[error]bool{context.Canceled: true, context.DeadlineExceeded: true, io.EOF: false, nil: false} {
		if o := watcher.Outcome(t.Context(), false, err, nil); o.Canceled != canceled {
			t.Errorf("%v: the limiter learns %+v", err, o)
		}
	}
}

// A client that leaves after the response began has seen the status.
func TestAClientThatLeavesAfterTheStatusIsNotCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	watcher := httpresponse.NewWatcher(ctx)
	w := watcher.Wrap(httptest.NewRecorder())
	w.WriteHeader(http.StatusEarlyHints)
	w.WriteHeader(http.StatusUnauthorized)
	cancel()
	_, _ = w.Write([]byte("no"))
	if o := watcher.Outcome(ctx, false, context.Canceled, nil); o.Canceled || o.Status != http.StatusUnauthorized {
		t.Errorf("the limiter learns %+v", o)
	}
}

// server2 is a response writer with the methods that the server's writers for HTTP/1 and HTTP/2
// have in common.
type server2 struct{ *httptest.ResponseRecorder }

var errSeen = errors.New("the server's writer was called")

func (s server2) FlushError() error        { s.Flush(); return errSeen }
func (s server2) CloseNotify() <-chan bool { return make(chan bool) }

// server1 has all methods of the server's writer for HTTP/1.
type server1 struct {
	server2
	server1Methods
}

type server1Methods interface {
	http.Hijacker
	io.ReaderFrom
}

// http2 is a server's writer for HTTP/2.
type http2 struct{ server2 }

// nothing has only the methods of http.ResponseWriter.
type nothing struct{ http.ResponseWriter }

// The writer that the handler gets flushes and hijacks if the other does, or one below it.
func TestTheWatchersWriterFlushesAndHijacksIfTheOtherDoes(t *testing.T) {
	r := httptest.NewRecorder()
	hijacker := struct {
		nothing
		http.Hijacker
	}{nothing{r}, &server{ResponseRecorder: r}}
	for name, row := range map[string]struct {
		w               http.ResponseWriter
		flushes, hijack bool
	}{
		"nothing":        {nothing{r}, false, false},
		"flushes":        {http2{server2{r}}, true, false},
		"hijacks":        {hijacker, false, true},
		"both":           {server1{server2{r}, &server{ResponseRecorder: r}}, true, true},
		"nothing, below": {bare{nothing{r}}, false, false},
		"flushes, below": {bare{bare{r}}, true, false},
		"hijacks, below": {bare{hijacker}, false, true},
		"both, below":    {bare{&server{ResponseRecorder: r}}, true, true},
	} {
		var w http.ResponseWriter
		watcher := httpresponse.NewWatcher(t.Context())
		if n := testing.AllocsPerRun(100, func() { w = watcher.Wrap(row.w) }); n != 0 {
			t.Errorf("%s: the writer costs %v allocations", name, n)
		}
		_, flushes := w.(http.Flusher)
		_, hijacks := w.(http.Hijacker)
		if flushes != row.flushes || hijacks != row.hijack {
			t.Errorf("%s: flushes: %t, hijacks: %t", name, flushes, hijacks)
		}
		if u, ok := w.(interface{ Unwrap() http.ResponseWriter }); !ok || u.Unwrap() != row.w {
			t.Errorf("%s: http.ResponseController does not find the writer", name)
		}
	}
}

func TestTheWatchersWritersPassEveryCallOn(t *testing.T) {
	for name, make := range map[string]func(*httptest.ResponseRecorder) http.ResponseWriter{
		"nothing": func(r *httptest.ResponseRecorder) http.ResponseWriter { return nothing{r} },
		"HTTP/1": func(r *httptest.ResponseRecorder) http.ResponseWriter {
			return server1{server2{r}, &server{ResponseRecorder: r, hijackErr: errSeen}}
		},
		"HTTP/2": func(r *httptest.ResponseRecorder) http.ResponseWriter { return http2{server2{r}} },
	} {
		for method, call := range map[string]func(w http.ResponseWriter) (status int, body string, called bool){
			"Write": func(w http.ResponseWriter) (int, string, bool) {
				_, err := w.Write([]byte("x"))
				return 200, "x", err == nil
			},
			"WriteHeader": func(w http.ResponseWriter) (int, string, bool) { w.WriteHeader(299); return 299, "", true },
			"Header":      func(w http.ResponseWriter) (int, string, bool) { w.Header().Set("A", "b"); return 404, "", true },
			"WriteString": func(w http.ResponseWriter) (int, string, bool) {
				_, err := w.(io.StringWriter).WriteString("x")
				return 200, "x", err == nil
			},
			"ReadFrom": func(w http.ResponseWriter) (int, string, bool) {
				n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("xy"))
				return 200, "xy", n == 2 && err == nil
			},
			"Flush": func(w http.ResponseWriter) (int, string, bool) { w.(http.Flusher).Flush(); return 200, "", true },
			"FlushError": func(w http.ResponseWriter) (int, string, bool) {
				return 200, "", errors.Is(http.NewResponseController(w).Flush(), errSeen)
			},
			"Hijack": func(w http.ResponseWriter) (int, string, bool) {
				_, _, err := w.(http.Hijacker).Hijack()
				return 404, "", errors.Is(err, errSeen)
			},
			"CloseNotify": func(w http.ResponseWriter) (int, string, bool) {
				return 404, "", (w.(http.CloseNotifier).CloseNotify() == nil) == (name == "nothing") //nolint:staticcheck // the server's writers have it
			},
		} {
			r := httptest.NewRecorder()
			watcher := httpresponse.NewWatcher(t.Context())
			w := watcher.Wrap(make(r))
			if name != "HTTP/1" && (method == "Hijack" || name == "nothing" && strings.HasPrefix(method, "Flush")) {
				continue
			}
			status, body, called := call(w)
			w.WriteHeader(http.StatusNotFound) // too late, if something was sent
			if got := watcher.Outcome(t.Context(), false, nil, r.Header().Get); got.Status != status || r.Body.String() != body || !called || method == "Header" && got.Header("A") != "b" {
				t.Errorf("%s, %s: the status is %d, the body %q, called: %t; want %d and %q", name, method, got.Status, r.Body, called, status, body)
			}
			if flushes := strings.HasPrefix(method, "Flush"); r.Flushed != flushes {
				t.Errorf("%s, %s: flushed: %t", name, method, r.Flushed)
			}
		}
	}
}
