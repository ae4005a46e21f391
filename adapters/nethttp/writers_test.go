package httplimit_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// If a rule needs the outcome, the handler gets a writer with the same interfaces.
func TestTheHandlerGetsTheServersWriterIfNoRuleNeedsTheOutcome(t *testing.T) {
	rec := httptest.NewRecorder()
	h := httplimit.Middleware(newLimiter(t, 5, 0))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if w != http.ResponseWriter(rec) {
			t.Errorf("the handler got a %T", w)
		}
	}))
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
}

// outcomeLimiter returns a limiter that stores the status of each outcome.
func outcomeLimiter(t *testing.T, quota int64, status *atomic.Int64) *core.Limiter {
	t.Helper()
	l, err := core.New(core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(quota)},
		Counts: func(_ core.Request, o core.Outcome) bool {
			status.Store(int64(o.Status))
			return true
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTheWatchedWriterKeepsItsInterfaces(t *testing.T) {
	var status atomic.Int64
	h := httplimit.Middleware(outcomeLimiter(t, 5, &status))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(io.ReaderFrom); !ok {
			t.Error("the writer has lost ReadFrom")
		}
		if _, ok := w.(http.Hijacker); !ok {
			t.Error("the writer has lost Hijack")
		}
		if _, ok := w.(http.Pusher); ok {
			t.Error("the writer has got Push, which the server's has not")
		}
		c := http.NewResponseController(w)
		if err := c.SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Errorf("SetWriteDeadline: %v", err)
		}
		if err := c.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Errorf("SetReadDeadline: %v", err)
		}
		if err := c.EnableFullDuplex(); err != nil {
			t.Errorf("EnableFullDuplex: %v", err)
		}
		w.WriteHeader(http.StatusEarlyHints) // not the last word
		if _, err := io.Copy(w, strings.NewReader("body")); err != nil {
			t.Error(err)
		}
	}))
	s := httptest.NewServer(h)
	defer s.Close()
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	s.Close() // waits for the handler
	if string(body) != "body" || status.Load() != http.StatusOK {
		t.Errorf("body %q, the limiter learnt status %d", body, status.Load())
	}
}

// unwrapping is a writer of another middleware. Beside the methods of http.ResponseWriter, it
// has only Unwrap.
type unwrapping struct{ http.ResponseWriter }

func (u unwrapping) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// http.ResponseController finds Flush and Hijack of the writer below a writer with Unwrap.
func TestFlushAndHijackOfAnUnwrappedWriterAreSeen(t *testing.T) {
	for name, row := range map[string]struct {
		handler func(w http.ResponseWriter)
		status  int64
	}{
		"hijack": {func(w http.ResponseWriter) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			_ = conn.Close()
		}, 101},
		"flush, then a status": {func(w http.ResponseWriter) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusUnauthorized) // too late
		}, 200},
		"a body, then a status": {func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, "x")
			w.WriteHeader(http.StatusUnauthorized)
		}, 200},
		"no status": {func(w http.ResponseWriter) { w.WriteHeader(1000) }, 500},
	} {
		t.Run(name, func(t *testing.T) {
			var status atomic.Int64
			h := httplimit.Middleware(outcomeLimiter(t, 5, &status))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { row.handler(w) }))
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(unwrapping{w}, r) }))
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.Start()
			resp, err := http.Get(s.URL)
			if err == nil {
				_ = resp.Body.Close()
			}
			s.Close() // waits for the handler, unless it has hijacked
			for end := time.Now().Add(10 * time.Second); status.Load() == 0 && time.Now().Before(end); {
				<-time.After(time.Millisecond)
			}
			if got := status.Load(); got != row.status {
				t.Errorf("the limiter learnt %d, want %d", got, row.status)
			}
		})
	}
}
