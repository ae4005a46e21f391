package httplimit_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
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
	"github.com/floodgate-go/floodgate/internal/hooktest"
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

func TestInvalidArgumentsPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"no checker":    func() { httplimit.Middleware(nil) },
		"a nil checker": func() { httplimit.Middleware((*core.Limiter)(nil)) },
		"a nil handler": func() { httplimit.PerIP(1, time.Second)(nil) },
		"a window of 0": func() { httplimit.PerIP(1, 0) },
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

// A second limiter cannot read more of the body than the first one has kept, if a middleware
// between them has read more.
func TestABodyThatWasReadFurtherIsAnError(t *testing.T) {
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

func TestHTTP2StreamsOfOneConnectionShareTheQuota(t *testing.T) {
	const quota, streams = 100, 250
	s := httptest.NewUnstartedServer(httplimit.Middleware(newLimiter(t, quota, 0))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	client := s.Client()
	client.Transport.(*http.Transport).TLSClientConfig.MinVersion = tls.VersionTLS13
	var passed atomic.Int64
	get := func() {
		resp, err := client.Get(s.URL)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.ProtoMajor != 2 {
			t.Errorf("spoken was %s", resp.Proto)
		}
		if resp.StatusCode == http.StatusOK {
			passed.Add(1)
		}
	}
	get() // opens the connection: without it, each goroutine would open one
	var wg sync.WaitGroup
	for range streams - 1 {
		wg.Go(get)
	}
	wg.Wait()
	if passed.Load() != quota {
		t.Errorf("%d of %d streams passed, want %d", passed.Load(), streams, quota)
	}
}

// A peer without an address is limited all the same.
func TestAPeerWithoutAnAddressIsLimited(t *testing.T) {
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

// The peers of a Unix socket have no address. Their headers are not read.
func TestClientsOfAUnixSocketShareOneQuota(t *testing.T) {
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

// A stream that the client cancels at once is charged as any other.
func TestCanceledHTTP2StreamsCount(t *testing.T) {
	const streams = 200
	var reached atomic.Uint64
	var running sync.WaitGroup
	l := newLimiter(t, 100, 0)
	limited := httplimit.Middleware(l)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		<-r.Context().Done()
	}))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		limited.ServeHTTP(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	client := s.Client()
	var wg sync.WaitGroup
	for range streams {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("x"))
			// Given up when some have been allowed, this one or others.
			stop := context.AfterFunc(waitUntil(func() bool { return reached.Load() > 0 }), cancel)
			defer stop()
			if resp, err := client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
			cancel()
		})
	}
	wg.Wait()
	s.Close() // waits for the connection, and not for its handlers
	running.Wait()
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

// A server always sets these fields. A program that makes an http.Request may leave them out.
func TestARequestWithoutURLAndHeaderIsLimited(t *testing.T) {
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
	hooks := hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { panic("hook") }}
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

func TestANilOptionIsNamed(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(1)}}}}))
	defer func() {
		const want = "httplimit: an option is nil: write one such as httplimit.OnDenied(f), or none"
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("panics with %s, want %s", got, want)
		}
	}()
	httplimit.Middleware(l, nil)
}

// tenants is a limiter of one request a minute for each tenant.
func tenants() *core.Limiter {
	return core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "tenant", Key: keyfuncs.PathValue("tenant"), Limits: []core.Limit{core.PerMinute(1)}}}}))
}

func ExamplePathValues() {
	// vars is what a router has instead of http.Request.PathValue, such as gorilla's mux.Vars.
	vars := func(r *http.Request) map[string]string { return map[string]string{"tenant": r.URL.Query().Get("of")} }

	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "hello, ", r.PathValue("tenant"))
	})
	app := httplimit.PathValues(vars)(httplimit.Middleware(tenants())(hello))
	for _, target := range []string{"/?of=acme", "/?of=other", "/?of=acme"} {
		rec := httptest.NewRecorder()
		app.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, target, nil))
		if rec.Code != http.StatusOK {
			rec.Body.Reset()
		}
		fmt.Println(rec.Code, rec.Body)
	}
	// Output:
	// 200 hello, acme
	// 200 hello, other
	// 429
}

func TestPathValuesPanicsWithoutAFunction(t *testing.T) {
	defer func() {
		const want = "httplimit: PathValues: vars is nil: pass a function such as gorilla's mux.Vars"
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("panics with %s", got)
		}
	}()
	httplimit.PathValues(nil)
}
