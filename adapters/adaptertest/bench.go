package adaptertest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/internal/racetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// Program returns a function that serves one request to GET /api, whose handler writes
// nothing, behind a limiter or, if c is nil, without one.
type Program func(c core.Checker) (serve func())

// HTTPProgram serves one request to GET /api of an application of net/http.
func HTTPProgram(h http.Handler) (serve func()) {
	r := httptest.NewRequest(http.MethodGet, "/api", nil)
	w := &plain{http.Header{}}
	return func() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

// plain is a response writer that keeps nothing but the header.
type plain struct{ header http.Header }

func (w *plain) Header() http.Header         { return w.header }
func (w *plain) Write(b []byte) (int, error) { return len(b), nil }
func (w *plain) WriteHeader(int)             {}

// Allocations are the most allocations that a limiter costs a request.
type Allocations struct{ NoHeaders, Headers, Denied, DeniedNoHeaders, InFlight float64 }

// cases are the limiters that Benchmark and Allocations.Check put before the handler.
func (most Allocations) cases() []allocated {
	perIP := func(quota int64, h core.Headers) core.Checker {
		return core.Must(core.New(core.Config{Headers: h, Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(quota)}}}}))
	}
	return []allocated{
		{"no headers", perIP(core.MaxQuota, core.HeadersOff), most.NoHeaders},
		{"default headers", perIP(core.MaxQuota, 0), most.Headers},
		{"denied", perIP(0, 0), most.Denied},
		{"denied, no headers", perIP(0, core.HeadersOff), most.DeniedNoHeaders},
		{"in flight", core.Must(inflight.New(inflight.Config{Max: 100, Key: keyfuncs.ClientIP()})), most.InFlight},
	}
}

type allocated struct {
	name    string
	checker core.Checker
	most    float64
}

// Check fails if a request allocates more. The number does not depend on the machine.
func (most Allocations) Check(t *testing.T, p Program) {
	bare := testing.AllocsPerRun(1000, p(nil))
	for _, row := range most.cases() {
		if got := testing.AllocsPerRun(1000, p(row.checker)) - bare; got > row.most && !racetest.Enabled {
			t.Errorf("%s: %v allocations a request, at most %v", row.name, got, row.most)
		}
	}
}

// Benchmark measures a request with and without a limiter.
func Benchmark(b *testing.B, p Program) {
	for _, row := range append([]allocated{{name: "bare handler"}}, Allocations{}.cases()...) {
		b.Run(row.name, func(b *testing.B) {
			serve := p(row.checker)
			b.ReportAllocs()
			for b.Loop() {
				serve()
			}
		})
	}
}
