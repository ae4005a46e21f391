// Package fiberlimit limits the requests to Fiber v2 applications.
//
//	app.Get("/api", fiberlimit.PerIP(100, time.Minute), api)
//
// PerIP is the shortest way to start. Middleware accepts every core.Checker: a limiter with any
// rules, a login guard or a set of policies. A handler reads the decision with DecisionFrom, if the
// Middleware has the option ExposeDecision.
//
// If a key is the route, mount the middleware on the routes. A middleware of app.Use or of a group
// gets no route.
//
// If a rule depends on the response (core.Rule.Counts and Clears, login guards) and the handler
// returns an error, the middleware passes the error to the application's ErrorHandler, so that the
// response is written. It then returns nil.
//
// # Bodies
//
// Fiber reads the body, up to its BodyLimit, before any handler runs. A limiter does not decompress
// the body. If a client waits for 100 Continue, Fiber tells it to send the body, and the limiter
// can deny the request only after that. fasthttp's ContinueHandler cannot deny it earlier: it gets
// the request's header without the client's address, and can answer with status 417 only. Keep
// BodyLimit small on routes that anybody can reach.
//
// If the application streams bodies (fiber.Config.StreamRequestBody), a limiter that needs the body
// reads all of it into memory, up to BodyLimit, and denies a longer body with 400.
//
// If a handler of an allowed request leaves a streamed body unread, fasthttp reads the rest of the
// body as the next request of the connection. A client can thus hide a request in a body, and a
// proxy before the application sends other clients the wrong responses. A handler that does not
// need the body reads it to its end, or calls c.Context().SetConnectionClose(). A response that
// this package makes for a denied request always closes such a connection.
package fiberlimit

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/floodgate-go/floodgate/adapters/internal/adapter"
	"github.com/floodgate-go/floodgate/adapters/internal/fasthttprequest"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// PerIP returns a middleware that allows each client address quota requests per window, counted in
// this process. [core.Limit] has the ranges of quota and window. PerIP panics if quota, window or
// an option is invalid, as template.Must does. For a store, other limits or the options of
// Middleware, make a limiter with [core.New] and use Middleware.
//
// The client address is the address of the connection's peer. Headers that Fiber reads do not
// change it. Behind a proxy, the peer is the proxy, so that all clients share one limit. The option
// [keyfuncs.Behind] names the header with the client's address and the proxies that write it:
//
//	fiberlimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) fiber.Handler {
	return Middleware(adapter.PerIP(quota, window, opts))
}

// Option is an option of [Middleware]: [OnDenied] or [ExposeDecision].
type Option func(*options)

type options struct {
	onDenied func(*fiber.Ctx, core.Decision) error
	expose   bool
}

// OnDenied sets a handler that writes the status and the body of the response to a denied request,
// in place of those that [core.Hooks.OnDisallowed] returns. The header already has the fields of
// the limiter and of OnDisallowed, except the Content-Type. h is called for every decision that is
// not Allowed, including bad requests and failures: see [core.Decision].Reason. It may be called
// concurrently.
func OnDenied(h func(c *fiber.Ctx, d core.Decision) error) Option {
	return func(o *options) { o.onDenied = h }
}

// ExposeDecision stores the decision in the locals of Fiber's context, so that [DecisionFrom] finds
// it: in the handlers behind the limiter, and after them in the middlewares before it.
func ExposeDecision() Option {
	return func(o *options) { o.expose = true }
}

// Middleware returns a handler that calls the next handler if c allows the request, and writes the
// response to a denied request. The returned handler may be mounted in any number of places, and
// called concurrently. c counts a request each time that the request passes it.
//
// With fiber.Config.Prefork, each child process counts for itself, unless c has a shared store:
// each child allows the whole quota. Each child writes one line about it to slog.Default().
//
// Middleware panics if c or an option is nil.
func Middleware(c core.Checker, opts ...Option) fiber.Handler {
	m, o := major.Middleware(c), options{}
	adapter.Apply("fiberlimit", &o, opts)
	m.Expose = o.expose
	if o.onDenied != nil {
		m.OnDenied = func(c fasthttprequest.Ctx, d core.Decision) error { return o.onDenied(own(c), d) }
	}
	return func(f *fiber.Ctx) error { return m.Serve(f, f.Context()) }
}

// DecisionFrom returns the decision with which a limiter has allowed the request. It finds the
// decision of a Middleware with the option [ExposeDecision], and one whose cost [SetCost] may
// settle. Of several, it returns the innermost: the one of the last limiter that the request has
// passed. The bool is false if there is none, and in a stream writer. DecisionFrom walks the stack:
// a few microseconds a call.
func DecisionFrom(f *fiber.Ctx) (core.Decision, bool) {
	return fasthttprequest.DecisionFrom(f.Context)
}

// SetCost sets the real cost of the request, in hits, when it is known: the tokens of an answer, or
// the rows read. After the handlers have returned, the limiters charge or refund the difference.
// SetCost returns false if that concerns no rule: see [core.Decision.SetCost].
//
// The last call counts. SetCost may be called concurrently, but not after the handler has returned:
// Fiber may then have given the context to another request. A stream is sent after the handlers: in
// a stream writer SetCost returns false. Pass the writer the result of [DecisionFrom], and call
// [core.Limiter.Adjust] there. SetCost walks the stack, as DecisionFrom does.
func SetCost(f *fiber.Ctx, cost int64) bool { return fasthttprequest.SetCost(f.Context, cost) }

// Deny answers a request that a handler denies with a decision of its own, such as that of
// [core.Limiter.Take]. The hooks of the decision's limiter make the response. It has the headers
// that the middleware would set. The handler returns its result, which is nil.
func Deny(f *fiber.Ctx, d core.Decision) error {
	major.Deny(f, f.Context(), d)
	return nil
}
