package httplimit_test

import (
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
