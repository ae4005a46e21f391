package fiber3limit_test

import (
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/racetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func newLimiter(tb testing.TB, quota int64, h core.Headers) *core.Limiter {
	tb.Helper()
	l, err := core.New(core.Config{Headers: h, Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(quota)}}}})
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// app serves GET /api behind the middlewares.
func app(hs ...fiber.Handler) fasthttp.RequestHandler {
	f := newFiber(false, false)
	add(f, fiber.MethodGet, "/api", append(hs, func(fiber.Ctx) error { return nil })...)
	return f.Handler()
}

// request returns a function that serves one request.
func request(h fasthttp.RequestHandler) func() {
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("/api")
	return func() {
		ctx.Response.Reset()
		ctx.ResetUserValues()
		h(&ctx)
	}
}

func BenchmarkMiddleware(b *testing.B) {
	run := func(name string, h fasthttp.RequestHandler) {
		b.Run(name, func(b *testing.B) {
			serve := request(h)
			b.ReportAllocs()
			for b.Loop() {
				serve()
			}
		})
	}
	run("bare handler", app())
	run("no headers", app(fiber3limit.Middleware(newLimiter(b, core.MaxQuota, core.HeadersOff))))
	run("default headers", app(fiber3limit.Middleware(newLimiter(b, core.MaxQuota, 0))))
	run("denied", app(fiber3limit.Middleware(newLimiter(b, 0, 0))))
}

// The number of allocations of a request does not depend on the machine: one with headers,
// for the text of RateLimit. The decision that handlers can read, the core.Request and the
// text of the address are in memory that earlier requests have used.
func TestAllocations(t *testing.T) {
	bare := testing.AllocsPerRun(1000, request(app()))
	for _, row := range []struct {
		name    string
		quota   int64
		headers core.Headers
		most    float64
	}{
		{"no headers", core.MaxQuota, core.HeadersOff, 0},
		{"default headers", core.MaxQuota, 0, 1},
		{"denied", 0, 0, 2},
		{"denied, no headers", 0, core.HeadersOff, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			limited := testing.AllocsPerRun(1000, request(app(fiber3limit.Middleware(newLimiter(t, row.quota, row.headers)))))
			if got := limited - bare; got > row.most && !racetest.Enabled {
				t.Errorf("%v allocations a request, at most %v", got, row.most)
			}
		})
	}
}
