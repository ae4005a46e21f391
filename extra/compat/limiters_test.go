package compat

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	fiberown "github.com/gofiber/fiber/v2/middleware/limiter"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"

	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/core"
)

// plain is a response writer that keeps nothing but the header.
type plain struct{ header http.Header }

func (w *plain) Header() http.Header         { return w.header }
func (w *plain) Write(b []byte) (int, error) { return len(b), nil }
func (w *plain) WriteHeader(int)             {}

// The adapters beside the limiters that come with their frameworks: the same
// handler, one address, every request allowed, headers as each writes them by
// default.
func BenchmarkEcho(b *testing.B) {
	for name, m := range map[string]echo.MiddlewareFunc{
		"floodgate":  echolimit.PerIP(core.MaxQuota, time.Minute),
		"Echo's own": middleware.RateLimiter(middleware.NewRateLimiterMemoryStore(rate.Limit(1e9))),
	} {
		b.Run(name, func(b *testing.B) {
			e := echo.New()
			e.GET("/api", func(echo.Context) error { return nil }, m)
			r := httptest.NewRequest(http.MethodGet, "/api", nil)
			w := &plain{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				e.ServeHTTP(w, r)
			}
		})
	}
}

func BenchmarkFiber(b *testing.B) {
	for name, m := range map[string]fiber.Handler{
		"floodgate":   fiberlimit.PerIP(core.MaxQuota, time.Minute),
		"Fiber's own": fiberown.New(fiberown.Config{Max: core.MaxQuota, Expiration: time.Minute}),
	} {
		b.Run(name, func(b *testing.B) {
			f := fiber.New()
			f.Get("/api", m, func(*fiber.Ctx) error { return nil })
			serve := f.Handler()
			var ctx fasthttp.RequestCtx
			ctx.Request.SetRequestURI("/api")
			b.ReportAllocs()
			for b.Loop() {
				ctx.Response.Reset()
				ctx.ResetUserValues()
				serve(&ctx)
			}
		})
	}
}
