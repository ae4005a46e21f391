package fiberlimit

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// PerIP returns a middleware that allows each client address quota requests per window,
// counted in this process. [core.Limit] has the ranges of quota and window. PerIP panics
// if quota, window or an option is invalid, as template.Must does. For a store, other
// limits or the options of Middleware, make a limiter with [core.New] and use Middleware.
//
// The client address is the address of the connection's peer. Headers that Fiber reads do
// not change it. Behind a proxy, the peer is the proxy, so that all clients share one
// limit. The option [keyfuncs.Behind] names the header with the client's address and the
// proxies that write it:
//
//	fiberlimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) fiber.Handler {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{{Quota: quota, Window: window}}}},
	})))
}

// Option is an option of [Middleware]: [OnDenied].
type Option func(*options)

type options struct {
	onDenied func(*fiber.Ctx, core.Decision) error
}

// OnDenied sets a handler that writes the response to denied requests. By default, the
// response is the one that [core.Hooks.OnDisallowed] returns. When h is called, the
// response's header has the fields of the limiter and of OnDisallowed, except the
// Content-Type. h writes the status and the body. It is called for every decision that is
// not Allowed, also for bad requests and failures: see [core.Decision].Reason. It may be
// called concurrently.
func OnDenied(h func(c *fiber.Ctx, d core.Decision) error) Option {
	return func(o *options) { o.onDenied = h }
}

// Middleware returns a handler that calls the next handler if c allows the request, and
// writes the response to a denied request. The returned handler may be mounted in any
// number of places, and called concurrently.
//
// If a request passes several places in which c is mounted, c counts it once. If the
// request has another method or path in a later place, as after fiber.Ctx.RestartRouting
// or fiber.Ctx.Path, c decides on these too: see [core.Checker].
//
// With fiber.Config.Prefork, each child process counts for itself, unless c has a shared
// store: each child allows the whole quota. Each child writes one line about it to
// slog.Default().
//
// Middleware panics if c or an option is nil, or if values of c's type cannot be compared.
func Middleware(c core.Checker, opts ...Option) fiber.Handler {
	m := &middleware{place: mounting.NewPlace("fiberlimit", c), apart: countsApart(c)}
	for _, opt := range opts {
		mounting.MustOption("fiberlimit", opt != nil)
		opt(&m.options)
	}
	return m.serve
}

type middleware struct {
	place mounting.Place
	apart bool // this process is one of several that count for themselves
	options
}

func (m *middleware) serve(f *fiber.Ctx) error {
	v := newVisit(f, &m.place, lastVisit(f))
	r := &v.request
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
		err := m.refuse(r, &v.Decision)
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

// setHeaders sets a decision's header lines. It adds rate limit headers to those of other
// limiters. It replaces Cache-Control and Retry-After, which may have one line only.
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

func (m *middleware) refuse(r *request, d *core.Decision) error {
	f := r.c
	denial := m.place.Checker.Deny(r, *d)
	if m.onDenied == nil {
		return refuse(f, denial)
	}
	setDenialHeader(f, denial, true)
	return m.onDenied(f, *d)
}

// refuse writes the response to a denied request.
func refuse(f *fiber.Ctx, denial core.Denial) error {
	setDenialHeader(f, denial, false)
	f.Status(denial.Status)
	f.Response().SetBody(denial.Body) // fasthttp sends none for HEAD, 204 and 304
	return nil
}

// setDenialHeader sets the header lines of a denial. If a handler writes the body, the Content-Type is left out.
func setDenialHeader(f *fiber.Ctx, denial core.Denial, handler bool) {
	header := &f.Response().Header
	if f.Request().IsBodyStream() {
		// fasthttp would read the rest of the body as the next request.
		f.Context().SetConnectionClose()
	}
	for _, name := range []string{"Etag", "Last-Modified"} { // they describe the body of another response
		header.Del(name)
	}
	for _, line := range denial.Header {
		if !handler || !strings.EqualFold(line.Name, "Content-Type") {
			header.Set(line.Name, line.Value)
		}
	}
}

// DecisionFrom returns the decision with which a limiter has allowed the request. If
// several limiters have allowed it, it is the decision of the last one. The bool is false
// if no limiter has allowed the request.
func DecisionFrom(f *fiber.Ctx) (core.Decision, bool) {
	return visited(f).Last()
}

// DecisionsFrom returns the decisions of all limiters that have allowed the request, in
// the order in which they decided.
func DecisionsFrom(f *fiber.Ctx) []core.Decision {
	return visited(f).All()
}
