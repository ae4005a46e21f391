package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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

// The handler gets the server's own writer, unless a rule needs the outcome.
func TestTheWriterOfTheHandler(t *testing.T) {
	rec := httptest.NewRecorder()
	by(keyfuncs.ClientIP(), 5)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if w != http.ResponseWriter(rec) {
			t.Errorf("the handler got a %T", w)
		}
	})).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
}
