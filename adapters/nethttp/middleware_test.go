package httplimit_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func newLimiter(t testing.TB, quota int64, headers core.Headers) *core.Limiter {
	t.Helper()
	l, err := core.New(core.Config{
		Headers: headers,
		Rules:   []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(quota)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestMisuseIsFoundAtConstruction(t *testing.T) {
	for name, f := range map[string]func(){
		"a nil checker":      func() { httplimit.Middleware(nil) },
		"a nil handler":      func() { httplimit.PerIP(1, time.Second)(nil) },
		"a window out of it": func() { httplimit.PerIP(1, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

// CASES 128: without a rule that asks for the outcome, the handler gets the
// very writer that the server made; else one with the same interfaces.
func TestTheWriterIsTheServersOwn(t *testing.T) {
	rec := httptest.NewRecorder()
	h := httplimit.Middleware(newLimiter(t, 5, 0))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if w != http.ResponseWriter(rec) {
			t.Errorf("the handler got a %T", w)
		}
	}))
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
}

// outcomeLimiter asks for the outcome of every request.
func outcomeLimiter(t *testing.T, quota int64, status *atomic.Int64) *core.Limiter {
	t.Helper()
	l, err := core.New(core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(quota)},
		Counts: func(o core.Outcome) bool {
			status.Store(int64(o.Status))
			return true
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// CASES 127, 128
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

// unwrapping is a writer of another middleware's, with nothing but Unwrap.
type unwrapping struct{ http.ResponseWriter }

func (u unwrapping) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// What goes past a writer by its Unwrap is seen all the same (CASES 126, 127).
func TestWritersBelowTheWriterAreWatched(t *testing.T) {
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

// CASES 66, 67: a refused client is answered before it has sent its body.
func TestARefusedClientIsAnsweredBeforeItsBody(t *testing.T) {
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

// A refused client whose body has been read keeps its connection.
func TestARefusalAfterTheBodyKeepsTheConnection(t *testing.T) {
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

// A refusal does not say of its body what an outer handler has said of another.
func TestARefusalsOwnHeaders(t *testing.T) {
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

// A body of which another middleware has read a part is not guessed at.
func TestABodyThatHasBeenReadFurther(t *testing.T) {
	read := func(n int) core.KeyFunc {
		return func(dst []byte, r core.Request) ([]byte, error) {
			b, err := r.Body(n)
			return append(dst, b...), err
		}
	}
	limit := func(n int) func(http.Handler) http.Handler {
		return httplimit.Middleware(core.Must(core.New(core.Config{Rules: []core.Rule{{Key: read(n), Limits: []core.Limit{core.PerHour(9)}}}})))
	}
	greedy := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadFull(r.Body, make([]byte, 8))
			next.ServeHTTP(w, r)
		})
	}
	for n, want := range map[int]int{4: 200, 8: 503, -1: 200} {
		rec := httptest.NewRecorder()
		h := limit(4)(greedy(limit(n)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))))
		if h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("0123456789abcdef"))); rec.Code != want {
			t.Errorf("Body(%d): status %d, want %d", n, rec.Code, want)
		}
	}
}

// CASES 130
func TestManyStreamsOfOneConnection(t *testing.T) {
	const quota, streams = 100, 250
	s := httptest.NewUnstartedServer(httplimit.Middleware(newLimiter(t, quota, 0))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	client := s.Client()
	client.Transport.(*http.Transport).TLSClientConfig.MinVersion = tls.VersionTLS13
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range streams {
		wg.Go(func() {
			resp, err := client.Get(s.URL)
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
			if resp.ProtoMajor != 2 {
				t.Errorf("spoken was %s", resp.Proto)
			}
			if resp.StatusCode == http.StatusOK {
				passed.Add(1)
			}
		})
	}
	wg.Wait()
	if passed.Load() != quota {
		t.Errorf("%d of %d streams passed, want %d", passed.Load(), streams, quota)
	}
}

// CASES 22, 23: a peer without an address is limited all the same.
func TestAPeerWithoutAnAddress(t *testing.T) {
	for _, remote := range []string{"", "@", "/run/x.sock", "pipe", "[fe80::1%eth0]:1", "192.0.2.1"} {
		h := httplimit.Middleware(newLimiter(t, 2, 0))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for i, want := range []int{200, 200, 429} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = remote
			r.Header.Set("X-Forwarded-For", fmt.Sprintf("6.6.6.%d", i))
			rec := httptest.NewRecorder()
			if h.ServeHTTP(rec, r); rec.Code != want {
				t.Errorf("peer %q, request %d: status %d, want %d", remote, i+1, rec.Code, want)
			}
		}
	}
}

// CASES 22: a server on a Unix socket.
func TestAUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(httplimit.Middleware(newLimiter(t, 2, 0))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	_ = s.Listener.Close()
	s.Listener = listener
	s.Start()
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	defer client.CloseIdleConnections()
	for i, want := range []int{200, 200, 429} {
		req, _ := http.NewRequest(http.MethodGet, "http://x/", nil)
		req.Header.Set("X-Forwarded-For", fmt.Sprintf("6.6.6.%d", i))
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("request %d: %d, want %d", i+1, resp.StatusCode, want)
		}
	}
}

// CASES 130: streams that are given up at once count all the same.
func TestStreamsThatAreGivenUpCount(t *testing.T) {
	const streams = 200
	var reached atomic.Uint64
	l := newLimiter(t, 100, 0)
	s := httptest.NewUnstartedServer(httplimit.Middleware(l)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		<-r.Context().Done()
	})))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	client := s.Client()
	var wg sync.WaitGroup
	for range streams {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("x"))
			// Given up when some have been admitted, this one or others.
			stop := context.AfterFunc(waitUntil(func() bool { return reached.Load() > 0 }), cancel)
			defer stop()
			if resp, err := client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
			cancel()
		})
	}
	wg.Wait()
	s.Close() // waits for the handlers
	if got := l.Stats().Allowed; got == 0 || got > 100 || got != reached.Load() {
		t.Errorf("%d counted, %d reached the handler", got, reached.Load())
	}
}

// waitUntil returns a context that ends when done is true.
func waitUntil(done func() bool) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for !done() {
			<-time.After(time.Millisecond)
		}
		cancel()
	}()
	return ctx
}

// A request that is made by hand may lack what a server always sets.
func TestARequestMadeByHand(t *testing.T) {
	key := keyfuncs.Join(keyfuncs.Route(), keyfuncs.Query("q"), keyfuncs.Cookie("c"), keyfuncs.Header("h"), keyfuncs.PostField("f"))
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Key: key, Limits: []core.Limit{core.PerHour(1)}}}}))
	h := httplimit.Middleware(l)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for i, want := range []int{200, 429} {
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, &http.Request{}); rec.Code != want {
			t.Errorf("request %d: status %d, want %d", i+1, rec.Code, want)
		}
	}
}

// A panic of a hook is the request's, and leaves nothing behind (CASES 124).
func TestAHooksPanicIsTheRequests(t *testing.T) {
	hooks := core.HookFuncs{OnDisallowed: func(core.Request, core.Decision) core.Denial { panic("hook") }}.Hooks()
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

// Writers that do not know the method are given no body for HEAD either.
func TestHeadHasNoBody(t *testing.T) {
	rec := httptest.NewRecorder()
	h := httplimit.Middleware(newLimiter(t, 0, 0))(http.NotFoundHandler())
	if h.ServeHTTP(rec, httptest.NewRequest(http.MethodHead, "/", nil)); rec.Code != 429 || rec.Body.Len() != 0 {
		t.Errorf("status %d, body %q", rec.Code, rec.Body)
	}
}

// CASES 49: the CORS middleware outside makes refused responses readable for
// pages of other sites.
func TestCORSOutsideReachesRefusedResponses(t *testing.T) {
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
