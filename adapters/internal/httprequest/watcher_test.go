package httprequest_test

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

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
)

// server is a response writer that can do everything that a server's can.
type server struct {
	*httptest.ResponseRecorder
	hijackErr error
}

func (s *server) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, s.hijackErr }

func (s *server) ReadFrom(r io.Reader) (int64, error) {
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
				s := &server{httptest.NewRecorder(), row.hijackErr}
				watcher := httprequest.NewWatcher(ctx, new(core.Decision))
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
	for _, row := range []row{{0, r()}, {-1, r()}, {99, r()}, {1000, r()}, {1000, nothing{r()}}, {1000, server1{server2{r()}, &server{r(), nil}}}} {
		code, writer := row.code, row.w
		watcher := httprequest.NewWatcher(t.Context(), new(core.Decision))
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
	watcher := httprequest.NewWatcher(t.Context(), new(core.Decision))
	for err, canceled := range map[error]bool{context.Canceled: true, context.DeadlineExceeded: true, io.EOF: false, nil: false} {
		if o := watcher.Outcome(t.Context(), false, err, nil); o.Canceled != canceled {
			t.Errorf("%v: the limiter learns %+v", err, o)
		}
	}
}

// A client that leaves after the response began has seen the status.
func TestAClientThatLeavesAfterTheStatusIsNotCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	watcher := httprequest.NewWatcher(ctx, new(core.Decision))
	w := watcher.Wrap(httptest.NewRecorder())
	w.WriteHeader(http.StatusEarlyHints)
	w.WriteHeader(http.StatusUnauthorized)
	cancel()
	_, _ = w.Write([]byte("no"))
	if o := watcher.Outcome(ctx, false, context.Canceled, nil); o.Canceled || o.Status != http.StatusUnauthorized {
		t.Errorf("the limiter learns %+v", o)
	}
}
