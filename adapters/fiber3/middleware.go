package fiber3limit

import (
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/floodgate-go/floodgate/adapters/internal/fasthttprequest"
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
//	fiber3limit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) fiber.Handler {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{{Quota: quota, Window: window}}}},
	})))
}

// Option is an option of [Middleware]: [OnDenied].
type Option func(*options)

type options struct {
	onDenied func(fiber.Ctx, core.Decision) error
}

// OnDenied sets a handler that writes the response to denied requests. By default, the
// response is the one that [core.Hooks.OnDisallowed] returns. When h is called, the
// response's header has the fields of the limiter and of OnDisallowed, except the
// Content-Type. h writes the status and the body. It is called for every decision that is
// not Allowed, also for bad requests and failures: see [core.Decision].Reason. It may be
// called concurrently.
func OnDenied(h func(c fiber.Ctx, d core.Decision) error) Option {
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
// With fiber.ListenConfig.EnablePrefork, each child process counts for itself, unless c has a shared
// store: each child allows the whole quota. Each child writes one line about it to
// slog.Default().
//
// Middleware panics if c or an option is nil, or if values of c's type cannot be compared.
func Middleware(c core.Checker, opts ...Option) fiber.Handler {
	m, o := major.Middleware(c), options{}
	for _, opt := range opts {
		mounting.MustOption("fiber3limit", opt != nil)
		opt(&o)
	}
	if o.onDenied != nil {
		m.OnDenied = func(c fasthttprequest.Ctx, d core.Decision) error { return o.onDenied(own(c), d) }
	}
	return func(f fiber.Ctx) error { return m.Serve(f, f.RequestCtx()) }
}

// DecisionFrom returns the decision with which a limiter has allowed the request. If
// several limiters have allowed it, it is the decision of the last one. The bool is false
// if no limiter has allowed the request.
func DecisionFrom(f fiber.Ctx) (core.Decision, bool) {
	return fasthttprequest.Visited(f.RequestCtx()).Last()
}

// DecisionsFrom returns the decisions of all limiters that have allowed the request, in
// the order in which they decided.
func DecisionsFrom(f fiber.Ctx) []core.Decision {
	return fasthttprequest.Visited(f.RequestCtx()).All()
}
