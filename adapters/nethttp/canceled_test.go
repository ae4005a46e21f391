package httplimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// outcomesOf returns a limiter and a channel of the outcomes that it gets.
func outcomesOf(t *testing.T) (*core.Limiter, <-chan core.Outcome) {
	t.Helper()
	learnt := make(chan core.Outcome, 1)
	l, err := core.New(core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(1_000_000)},
		Counts: func(_ core.Request, o core.Outcome) bool {
			learnt <- o
			return true
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return l, learnt
}

// The client went away while the guard was still waiting for its store. http.TimeoutHandler
// then chooses at random between 503 and 200, the status of a handler that wrote nothing.
func TestACanceledRequestWithATimeoutHandlerCountsAsCanceled(t *testing.T) {
	l, learnt := outcomesOf(t)
	app := httplimit.Middleware(l)(http.TimeoutHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), time.Minute, ""))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	seen := map[int]int{}
	for range 300 {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody).WithContext(ctx))
		seen[w.Code]++
		if o := <-learnt; !o.Canceled || o.Status != core.StatusCanceled {
			t.Fatalf("status %d was written: the limiter learnt %+v", w.Code, o)
		}
	}
	if seen[http.StatusOK] == 0 {
		t.Logf("http.TimeoutHandler wrote %v: the case that this test is for did not happen", seen)
	}
}

// Whatever the handler does after the client has gone away, the client has not seen it.
func TestResponsesAfterTheClientHasGoneCountAsCanceled(t *testing.T) {
	for _, row := range []struct {
		name    string
		handler http.HandlerFunc
		want    core.Outcome
	}{
		{"only an informational response", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) }, core.Outcome{Status: 499, Canceled: true}},
		{"a panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, core.Outcome{Status: 500, Canceled: true, Panicked: true}},
		{"a response and a panic", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			panic(http.ErrAbortHandler)
		}, core.Outcome{Status: 502, Canceled: true, Panicked: true}},
		{"a flush", func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() }, core.Outcome{Status: 499, Canceled: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, learnt := outcomesOf(t)
			ctx, cancel := context.WithCancel(context.Background())
			app := httplimit.Middleware(l)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				cancel()
				row.handler(w, r)
			}))
			func() {
				defer func() { _ = recover() }()
				app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", http.NoBody).WithContext(ctx))
			}()
			o := <-learnt
			o.Header = nil
			if o.Status != row.want.Status || o.Canceled != row.want.Canceled || o.Panicked != row.want.Panicked {
				t.Errorf("the limiter learnt %+v, want %+v", o, row.want)
			}
		})
	}
}
