package fiberlimit_test

import (
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/core"
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
	f.Get("/api", append(hs, func(*fiber.Ctx) error { return nil })...)
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
	run("no headers", app(fiberlimit.Middleware(newLimiter(b, core.MaxQuota, core.HeadersOff))))
	run("default headers", app(fiberlimit.Middleware(newLimiter(b, core.MaxQuota, 0))))
	run("denied", app(fiberlimit.Middleware(newLimiter(b, 0, 0))))
}

// The number of allocations of a request does not depend on the machine: one for the text of
// the address. The decision that handlers can read is kept in memory that earlier requests
// have used, and the core.Request takes none.
func TestAllocations(t *testing.T) {
	bare := testing.AllocsPerRun(1000, request(app()))
	limited := testing.AllocsPerRun(1000, request(app(fiberlimit.Middleware(newLimiter(t, core.MaxQuota, core.HeadersOff)))))
	if got := limited - bare; got > 1 && !raceEnabled {
		t.Errorf("%v allocations a request, at most 1", got)
	}
}
