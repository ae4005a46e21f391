package httplimit_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// by is a middleware with a limiter of quota requests an hour for each key.
func by(key core.KeyFunc, quota int64) func(http.Handler) http.Handler {
	return httplimit.Middleware(core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Key: key, Limits: []core.Limit{core.PerHour(quota)}}}})))
}

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func TestANilArgumentIsNamed(t *testing.T) {
	for want, f := range map[string]func(){
		"httplimit: Middleware: the handler is nil: pass the handler of the allowed requests": func() { by(keyfuncs.ClientIP(), 1)(nil) },
		"httplimit: PathValues: vars is nil: pass a function such as gorilla's mux.Vars":      func() { httplimit.PathValues(nil) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != want {
					t.Errorf("panics with %s, want %s", got, want)
				}
			}()
			f()
		}()
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
	greedy := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadFull(r.Body, make([]byte, 8))
			next.ServeHTTP(w, r)
		})
	}
	for n, want := range map[int]int{4: 200, 8: 503, -1: 200} {
		rec := httptest.NewRecorder()
		h := by(read(4), 9)(greedy(by(read(n), 9)(nothing)))
		if h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("0123456789abcdef"))); rec.Code != want {
			t.Errorf("Body(%d): status %d, want %d", n, rec.Code, want)
		}
	}
}

// A peer without an address of IP is limited all the same, as that of a Unix socket. Its
// headers are not read.
func TestAPeerWithoutAnAddressIsLimited(t *testing.T) {
	for _, remote := range []string{"", "@", "/run/x.sock", "pipe", "[fe80::1%eth0]:1", "192.0.2.1"} {
		h := by(keyfuncs.ClientIP(), 2)(nothing)
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

// A server always sets these fields. A program that makes an http.Request may leave them out.
func TestARequestWithoutURLAndHeaderIsLimited(t *testing.T) {
	h := by(keyfuncs.Join(keyfuncs.Route(), keyfuncs.Query("q"), keyfuncs.Cookie("c"), keyfuncs.Header("h"), keyfuncs.PostField("f")), 1)(nothing)
	for i, want := range []int{200, 429} {
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, &http.Request{}); rec.Code != want {
			t.Errorf("request %d: status %d, want %d", i+1, rec.Code, want)
		}
	}
}

// The connection is closed only if the body of the denied request was not read.
func TestADenialAfterTheBodyWasReadKeepsTheConnection(t *testing.T) {
	for _, row := range []struct {
		key    core.KeyFunc
		closed bool
	}{{keyfuncs.PostField("username"), false}, {keyfuncs.ClientIP(), true}} {
		s := httptest.NewServer(by(row.key, 0)(http.NotFoundHandler()))
		resp, err := http.Post(s.URL, "application/x-www-form-urlencoded", strings.NewReader("username=alice"))
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusTooManyRequests || resp.Close != row.closed {
			t.Errorf("status %d, closed %v, want %v", resp.StatusCode, resp.Close, row.closed)
		}
		s.Close()
	}
}

// The handler gets the server's own writer. If a rule needs the outcome, it gets one with the
// same interfaces.
func TestTheWriterOfTheHandler(t *testing.T) {
	rec := httptest.NewRecorder()
	by(keyfuncs.ClientIP(), 5)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if w != http.ResponseWriter(rec) {
			t.Errorf("the handler got a %T", w)
		}
	})).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))

	var status atomic.Int64
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(5)},
		Counts: func(_ core.Request, o core.Outcome) bool {
			status.Store(int64(o.Status))
			return true
		},
	}}}))
	s := httptest.NewServer(httplimit.Middleware(l)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, readsFrom := w.(io.ReaderFrom)
		_, hijacks := w.(http.Hijacker)
		_, flushes := w.(http.Flusher)
		if _, pushes := w.(http.Pusher); !readsFrom || !hijacks || !flushes || pushes { // the server's has no Push
			t.Errorf("ReadFrom %v, Hijack %v, Flush %v, Push %v", readsFrom, hijacks, flushes, pushes)
		}
		w.WriteHeader(http.StatusEarlyHints) // not the last word
		if _, err := io.Copy(w, strings.NewReader("body")); err != nil {
			t.Error(err)
		}
	})))
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
