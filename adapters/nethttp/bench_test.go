package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/internal/racetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// plain is a response writer that keeps nothing but the header.
type plain struct{ header http.Header }

func (w *plain) Header() http.Header         { return w.header }
func (w *plain) Write(b []byte) (int, error) { return len(b), nil }
func (w *plain) WriteHeader(int)             {}

func bare(http.ResponseWriter, *http.Request) {}

func serveMany(b *testing.B, h http.Handler) {
	b.Helper()
	r := httptest.NewRequest(http.MethodGet, "/api", nil)
	w := &plain{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

func BenchmarkMiddleware(b *testing.B) {
	limited := func(quota int64, h core.Headers) http.Handler {
		return httplimit.Middleware(newLimiter(b, quota, h))(http.HandlerFunc(bare))
	}
	b.Run("bare handler", func(b *testing.B) { serveMany(b, http.HandlerFunc(bare)) })
	b.Run("no headers", func(b *testing.B) { serveMany(b, limited(core.MaxQuota, core.HeadersOff)) })
	b.Run("default headers", func(b *testing.B) { serveMany(b, limited(core.MaxQuota, 0)) })
	b.Run("denied", func(b *testing.B) { serveMany(b, limited(0, 0)) })
	b.Run("in flight", func(b *testing.B) { serveMany(b, inFlight()) })
}

func inFlight() http.Handler {
	l := core.Must(inflight.New(inflight.Config{Max: 100, Key: keyfuncs.ClientIP()}))
	return httplimit.Middleware(l)(http.HandlerFunc(bare))
}

// The number of allocations of a request does not depend on the machine.
func TestAllocations(t *testing.T) {
	for _, row := range []struct {
		name    string
		quota   int64
		headers core.Headers
		most    float64

		inFlight bool
	}{
		{"no headers", core.MaxQuota, core.HeadersOff, 0, false},
		{"default headers", core.MaxQuota, 0, 2, false},
		{"denied", 0, 0, 3, false},
		{"denied, no headers", 0, core.HeadersOff, 2, false},
		{"in flight", 0, 0, 5, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := httplimit.Middleware(newLimiter(t, row.quota, row.headers))(http.HandlerFunc(bare))
			if row.inFlight {
				h = inFlight()
			}
			r := httptest.NewRequest(http.MethodGet, "/api", nil)
			w := &plain{http.Header{}}
			got := testing.AllocsPerRun(1000, func() {
				clear(w.header)
				h.ServeHTTP(w, r)
			})
			if got > row.most && !racetest.Enabled {
				t.Errorf("%v allocations a request, at most %v", got, row.most)
			}
		})
	}
}
