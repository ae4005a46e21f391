package echolimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/racetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// plain is a response writer that keeps nothing but the header.
type plain struct{ header http.Header }

func (w *plain) Header() http.Header         { return w.header }
func (w *plain) Write(b []byte) (int, error) { return len(b), nil }
func (w *plain) WriteHeader(int)             {}

func newLimiter(tb testing.TB, quota int64, h core.Headers) *core.Limiter {
	tb.Helper()
	l, err := core.New(core.Config{Headers: h, Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(quota)}}}})
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// app serves GET /api behind the middlewares.
func app(ms ...echo.MiddlewareFunc) http.Handler {
	e := newEcho()
	e.GET("/api", func(echo.Context) error { return nil }, ms...)
	return e
}

// request returns a function that serves one request.
func request(h http.Handler) func() {
	r := httptest.NewRequest(http.MethodGet, "/api", nil)
	w := &plain{http.Header{}}
	return func() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

func BenchmarkMiddleware(b *testing.B) {
	run := func(name string, h http.Handler) {
		b.Run(name, func(b *testing.B) {
			serve := request(h)
			b.ReportAllocs()
			for b.Loop() {
				serve()
			}
		})
	}
	run("bare handler", app())
	run("no headers", app(echolimit.Middleware(newLimiter(b, core.MaxQuota, core.HeadersOff))))
	run("default headers", app(echolimit.Middleware(newLimiter(b, core.MaxQuota, 0))))
	run("denied", app(echolimit.Middleware(newLimiter(b, 0, 0))))
}

// The number of allocations of a request does not depend on the machine: one because Echo
// links a route's middlewares anew for each request, and two for the headers.
func TestAllocations(t *testing.T) {
	bare := testing.AllocsPerRun(1000, request(app()))
	for headers, most := range map[core.Headers]float64{core.HeadersOff: 1, 0: 3} {
		limited := testing.AllocsPerRun(1000, request(app(echolimit.Middleware(newLimiter(t, core.MaxQuota, headers)))))
		if got := limited - bare; got > most && !racetest.Enabled {
			t.Errorf("headers %v: %v allocations a request, at most %v", headers, got, most)
		}
	}
}
