package httplimit_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// The server does not wait for the body of a denied request.
func TestADeniedClientGetsTheResponseBeforeItSendsItsBody(t *testing.T) {
	s := httptest.NewServer(httplimit.Middleware(newLimiter(t, 0, 0))(http.NotFoundHandler()))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // of no interest any more
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// The connection is closed only if the body of the denied request was not read.
func TestADenialAfterTheBodyWasReadKeepsTheConnection(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Key: keyfuncs.PostField("username"), Limits: []core.Limit{core.PerHour(0)}}}}))
	s := httptest.NewServer(httplimit.Middleware(l)(http.NotFoundHandler()))
	defer s.Close()
	resp, err := http.Post(s.URL, "application/x-www-form-urlencoded", strings.NewReader("username=alice"))
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusTooManyRequests || resp.Close {
		t.Errorf("status %d, closed %v", resp.StatusCode, resp.Close)
	}
}

// An outer handler may have set Content-Length, ETag, Last-Modified and Cache-Control for its
// own body.
func TestADenialReplacesHeadersOfAnotherBody(t *testing.T) {
	h := httplimit.Middleware(newLimiter(t, 0, 0))(http.NotFoundHandler())
	rec := httptest.NewRecorder()
	for name, v := range map[string]string{"Cache-Control": "public", "ETag": `"x"`, "Content-Length": "7", "Last-Modified": "never"} {
		rec.Header().Set(name, v)
	}
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	if got := rec.Header()["Cache-Control"]; len(got) != 1 || got[0] != "no-store" {
		t.Errorf("Cache-Control %q", got)
	}
	if rec.Header().Get("ETag")+rec.Header().Get("Content-Length")+rec.Header().Get("Last-Modified") != "" {
		t.Errorf("%v", rec.Header())
	}
}

// A second request panics in the same way: the first panic has left no lock behind.
func TestAPanicOfOnDisallowedIsNotRecovered(t *testing.T) {
	hooks := core.HookFuncs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { panic("hook") }}
	l := core.Must(core.New(core.Config{Hooks: hooks, Rules: []core.Rule{{Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(1)}}}}))
	h := httplimit.Middleware(l)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	for range 2 {
		func() {
			defer func() {
				if got := recover(); got != "hook" {
					t.Errorf("recovered %v", got)
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		}()
	}
}

// httptest.ResponseRecorder does not know the method, as net/http does.
func TestADenialOfHEADHasNoBody(t *testing.T) {
	rec := httptest.NewRecorder()
	h := httplimit.Middleware(newLimiter(t, 0, 0))(http.NotFoundHandler())
	if h.ServeHTTP(rec, httptest.NewRequest(http.MethodHead, "/", nil)); rec.Code != 429 || rec.Body.Len() != 0 {
		t.Errorf("status %d, body %q", rec.Code, rec.Body)
	}
}

// Pages of other sites can read a denial if the CORS middleware runs before the limiter.
func TestACORSMiddlewareOutsideSetsItsHeadersOnDenials(t *testing.T) {
	limited := httplimit.Middleware(newLimiter(t, 0, 0))(http.NotFoundHandler())
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Expose-Headers", "RateLimit, RateLimit-Policy, Retry-After")
		limited.ServeHTTP(w, r)
	})
	rec := httptest.NewRecorder()
	if h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil)); rec.Code != 429 || rec.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("status %d, header %v", rec.Code, rec.Header())
	}
}
