package fiberlimit

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// PerIP limits each client address to quota requests per window, counted in
// this process; see [core.Limit] for the ranges. It panics if the quota, the
// window or an option is invalid, as template.Must does. If you need a store or
// the options of Middleware, make a limiter with [core.New] and use Middleware.
//
// The address is that of the connection's peer, whatever Fiber reads in the headers.
// Behind a proxy, the peer is the proxy, so that all clients share one limit: say
// which header has the client's address, and which proxies write it.
//
//	fiberlimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) fiber.Handler {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{{Quota: quota, Window: window}}}},
	})))
}

// Option changes what Middleware does.
type Option func(*options)

type options struct {
	onDenied func(*fiber.Ctx, core.Decision) error
}

// OnDenied gives denied requests to a handler of the application. The response's
// header then has all fields that the limiter and [core.Hooks.OnDisallowed] set,
// except the Content-Type of the body, which is not sent. The handler writes status
// and body. It is called for every decision that is not Allowed, also for bad
// requests and failures: see [core.Decision].Reason.
func OnDenied(h func(c *fiber.Ctx, d core.Decision) error) Option {
	return func(o *options) { o.onDenied = h }
}

// Middleware asks c about every request, and calls the next handler if c allows it.
//
// The result may be used in any number of places. A request that meets c more than
// once is counted once. If it comes back with another method or path, as after
// c.RestartRouting or c.Path, c decides on these too: see [core.Checker].
//
// With fiber.Config.Prefork, every child process counts for itself unless c has
// a shared store: all children together allow the quota once for each of them.
// The log of each child says so once.
//
// Middleware panics if c is nil, or of a type whose values cannot be compared.
func Middleware(c core.Checker, opts ...Option) fiber.Handler {
	m := &middleware{place: mounting.NewPlace("fiberlimit", c), apart: countsApart(c)}
	for _, opt := range opts {
		opt(&m.options)
	}
	return m.serve
}

type middleware struct {
	place mounting.Place
	apart bool // other processes of this application count for themselves
	options
}

func (m *middleware) serve(f *fiber.Ctx) error {
	r, v := request{f}, newVisit(&m.place, lastVisit(f))
	if seen := v.Before.Of(&m.place); seen == nil {
		v.Decision = m.place.Checker.Check(r)
	} else {
		var asked bool
		if v.Decision, asked = m.place.Check(seen, r, r.origin()); !asked {
			v.free()
			return f.Next()
		}
	}
	if m.apart {
		sayApart(v.Decision.Limiter)
	}
	setHeaders(f, &v.Decision)
	if !v.Decision.Allowed {
		err := m.refuse(f, &v.Decision)
		v.free()
		return err
	}
	if m.place.Compares(&v.Decision) {
		v.origin = r.origin()
		v.Origin = &v.origin
	}
	v.keep(f)
	if v.Decision.NeedsOutcome() {
		return nextAndSettle(f, m.place.Checker, v.Decision)
	}
	return f.Next()
}

// setHeaders sets a decision's header lines. Rate limit headers are added to
// those of other limiters; there is one word on caching and retrying.
func setHeaders(f *fiber.Ctx, d *core.Decision) {
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

func (m *middleware) refuse(f *fiber.Ctx, d *core.Decision) error {
	denial := m.place.Checker.Deny(request{f}, *d)
	header := &f.Response().Header
	if f.Request().IsBodyStream() {
		// fasthttp would take what is left of the body for the next request.
		f.Context().SetConnectionClose()
	}
	for _, name := range []string{"Etag", "Last-Modified"} { // of another body
		header.Del(name)
	}
	for _, line := range denial.Header {
		if m.onDenied == nil || !strings.EqualFold(line.Name, "Content-Type") {
			header.Set(line.Name, line.Value)
		}
	}
	if m.onDenied != nil {
		return m.onDenied(f, *d)
	}
	f.Status(denial.Status)
	f.Response().SetBody(denial.Body) // fasthttp sends none for HEAD, 204 and 304
	return nil
}

// DecisionFrom returns the decision on the request, the last one if several
// limiters have decided. The bool is false if no limiter has.
func DecisionFrom(f *fiber.Ctx) (core.Decision, bool) {
	return lastVisit(f).Last()
}

// DecisionsFrom returns the decisions of all limiters that the request has met,
// the first one first.
func DecisionsFrom(f *fiber.Ctx) []core.Decision {
	return lastVisit(f).All()
}
