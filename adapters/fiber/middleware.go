package fiberlimit

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// PerIP limits each client address to quota requests per window, counted in
// this process; see [core.Limit] for the ranges. It panics if the quota, the
// window or an option is wrong, as template.Must does. For the options of
// Middleware, or a store, make a limiter and use Middleware.
//
// The address is that of the connection's peer, and never what Fiber itself
// makes of the headers. Behind a proxy
// that is the proxy's, and all clients share one limit. Say then which header
// has the client's address, and which proxies write it:
//
//	fiberlimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) fiber.Handler {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{core.Per(quota, window)}}},
	})))
}

// Option changes what Middleware does.
type Option func(*options)

type options struct {
	onDenied func(*fiber.Ctx, core.Decision) error
}

// OnDenied hands refused requests to a handler of the application's. The
// response's header has all fields by then that [core.Hooks.OnDisallowed] and
// the limiter have set, the Content-Type of the body that is not sent excepted;
// the handler writes status and body.
func OnDenied(h func(c *fiber.Ctx, d core.Decision) error) Option {
	return func(o *options) { o.onDenied = h }
}

// Middleware asks c about every request, and passes on those that it allows.
// What it returns may be used in any number of places; a request that meets c
// more than once is counted once. If it comes back with another method or path,
// as c.RestartRouting or c.Path can make it, c decides on these too: see
// [core.Rechecker]. It panics if c is nil, or of a type whose values cannot be
// compared.
func Middleware(c core.Checker, opts ...Option) fiber.Handler {
	mounting.MustWork("fiberlimit", c)
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	c.Mount()
	return func(f *fiber.Ctx) error { return serve(f, c, &o) }
}

func serve(f *fiber.Ctx, c core.Checker, o *options) error {
	before, r := lastVisit(f), request{f}
	target := mounting.TargetOf(f.Method(), f.Path(), utils.UnsafeString(f.Context().URI().PathOriginal()))
	d, asked := before.Check(c, r, target)
	if !asked {
		return f.Next()
	}
	setHeaders(f, d)
	if !d.Allowed {
		return refuse(f, d, c.Deny(r, d), o)
	}
	f.Locals(visitKey{}, &mounting.Visit{Checker: c, Decision: d, Target: target, Route: r.Route(), Before: before})
	if d.NeedsOutcome() {
		return nextAndSettle(f, c, d)
	}
	return f.Next()
}

// setHeaders sets a decision's header lines. Rate limit headers are added to
// those of other limiters; there is one word on caching and retrying.
func setHeaders(f *fiber.Ctx, d core.Decision) {
	var buf [8]core.Header
	header := &f.Response().Header
	for _, line := range d.AppendHeaders(buf[:0]) {
		if line.Name == "Cache-Control" || line.Name == "Retry-After" {
			header.Set(line.Name, line.Value)
		} else {
			header.Add(line.Name, line.Value)
		}
	}
}

func refuse(f *fiber.Ctx, d core.Decision, denial core.Denial, o *options) error {
	header := &f.Response().Header
	if f.Request().IsBodyStream() {
		// fasthttp would take what is left of the body for the next request.
		f.Context().SetConnectionClose()
	}
	for _, name := range []string{"Etag", "Last-Modified"} { // of another body
		header.Del(name)
	}
	for _, line := range denial.Header {
		if o.onDenied == nil || !strings.EqualFold(line.Name, "Content-Type") {
			header.Set(line.Name, line.Value)
		}
	}
	if o.onDenied != nil {
		return o.onDenied(f, d)
	}
	f.Status(denial.Status)
	f.Response().SetBody(denial.Body) // fasthttp sends none for HEAD, 204 and 304
	return nil
}

type visitKey struct{}

func lastVisit(f *fiber.Ctx) *mounting.Visit {
	v, _ := f.Locals(visitKey{}).(*mounting.Visit)
	return v
}

// DecisionFrom returns the decision on the request: the last one, where several
// limiters have decided.
func DecisionFrom(f *fiber.Ctx) (core.Decision, bool) {
	return lastVisit(f).Last()
}
