// Package echo5limit limits the requests to Echo v5 applications.
//
//	e.GET("/api", api, echo5limit.PerIP(100, time.Minute))
//
// PerIP is the shortest way to start. Middleware accepts every core.Checker: a limiter with any
// rules, a login guard or a set of policies. A handler reads the decision with DecisionFrom, if the
// Middleware has the option ExposeDecision.
//
// Mount the middleware before every middleware that reads the request's body, because a key
// function cannot read a body that was read before.
//
// If a rule depends on the response (core.Rule.Counts and Clears, login guards) and the handler
// returns an error, the middleware passes the error to the application's HTTPErrorHandler, so that
// the response is written. It then returns the error, and Echo calls the HTTPErrorHandler again. An
// HTTPErrorHandler of your own must do nothing if the response is committed, as Echo's does: see
// echo.UnwrapResponse.
//
// A middleware in e.Use that changes the request's method, such as MethodOverride, runs before the
// limiter of a route. A ShouldLimit hook of that limiter gets the changed method.
//
// The package is a module of its own, so that a program with another framework does not get Echo
// v5's requirements:
//
//	go get github.com/floodgate-go/floodgate/adapters/echo5
package echo5limit

import (
	"time"

	"github.com/labstack/echo/v5"

	"github.com/floodgate-go/floodgate/adapters/internal/adapter"
	"github.com/floodgate-go/floodgate/adapters/internal/httpresponse"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// PerIP returns a middleware that allows each client address quota requests per window, counted in
// this process. [core.Limit] has the ranges of quota and window. PerIP panics if quota, window or
// an option is invalid, as template.Must does. For a store, other limits or the options of
// Middleware, make a limiter with [core.New] and use Middleware.
//
// The client address is the address of the connection's peer. Headers that Echo reads do not change
// it. Behind a proxy, the peer is the proxy, so that all clients share one limit. The option
// [keyfuncs.Behind] names the header with the client's address and the proxies that write it:
//
//	echo5limit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) echo.MiddlewareFunc {
	return Middleware(adapter.PerIP(quota, window, opts))
}

// Option is an option of [Middleware]: [OnDenied] or [ExposeDecision].
type Option func(*options)

type options struct {
	onDenied func(*echo.Context, core.Decision) error
	expose   bool
}

// OnDenied sets a handler that writes the status and the body of the response to a denied request,
// in place of those that [core.Hooks.OnDisallowed] returns. The header already has the fields of
// the limiter and of OnDisallowed, except the Content-Type. h is called for every decision that is
// not Allowed, including bad requests and failures: see [core.Decision].Reason. It may be called
// concurrently.
func OnDenied(h func(c *echo.Context, d core.Decision) error) Option {
	return func(o *options) { o.onDenied = h }
}

// ExposeDecision stores the decision in Echo's context. [DecisionFrom] finds it there: in the
// handlers behind the limiter, and after them in the middlewares before the limiter and in the
// application's HTTPErrorHandler. Storing costs as much time as the decision itself.
func ExposeDecision() Option {
	return func(o *options) { o.expose = true }
}

// Middleware returns a middleware that calls the next handler if c allows the request, and writes
// the response to a denied request. The middleware may be mounted in any number of places, and
// called concurrently. c counts a request each time that the request passes it.
//
// Middleware panics if c or an option is nil.
func Middleware(c core.Checker, opts ...Option) echo.MiddlewareFunc {
	adapter.MustChecker("echo5limit", c)
	m := &middleware{checker: c}
	adapter.Apply("echo5limit", &m.options, opts)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(e *echo.Context) error { return m.serve(e, next) }
	}
}

type middleware struct {
	checker core.Checker
	options
}

func (m *middleware) serve(e *echo.Context, next echo.HandlerFunc) error {
	d := m.checker.Check(request{e})
	if !d.Allowed {
		return m.deny(e, &d)
	}
	httpresponse.SetHeaders(e.Response().Header(), &d)
	if m.expose || d.Estimated() {
		e.Set(adapter.Key, &adapter.Exposed{Decision: d, Outer: exposed(e)})
	}
	if d.NeedsOutcome() {
		return nextAndSettle(e, m.checker, d, next)
	}
	return next(e)
}

func (m *middleware) deny(e *echo.Context, d *core.Decision) error {
	denial := m.checker.Deny(request{e}, *d)
	if m.onDenied == nil {
		httpresponse.Deny(e.Response(), e.Request(), d, denial)
		return nil
	}
	httpresponse.SetDenialHeader(e.Response().Header(), e.Request(), d, denial, true)
	return m.onDenied(e, *d)
}

// exposed returns the innermost decision that is stored in the context.
func exposed(e *echo.Context) *adapter.Exposed {
	x, _ := e.Get(adapter.Key).(*adapter.Exposed)
	return x
}

// DecisionFrom returns the decision with which a limiter has allowed the request. It finds the
// decision of a Middleware with the option [ExposeDecision], and one whose cost [SetCost] may
// settle. Of several, it returns the innermost: the one of the last limiter that the request has
// passed. The bool is false if there is none.
//
// If a goroutine outlives the handlers, pass it the decision and not e, because Echo reuses e.
func DecisionFrom(e *echo.Context) (core.Decision, bool) { return exposed(e).Last() }

// SetCost sets the real cost of the request, in hits, when it is known: the tokens of an answer, or
// the rows read. After the handlers have returned, the limiters charge or refund the difference.
// SetCost returns false if that concerns no rule: see [core.Decision.SetCost].
//
// The last call counts. SetCost may be called concurrently.
func SetCost(e *echo.Context, cost int64) bool { return exposed(e).SetCost(cost) }

// Deny answers a request that a handler denies with a decision of its own, such as that of
// [core.Limiter.Take]. The hooks of the decision's limiter make the response. It has the headers
// that the middleware would set. The handler returns its result, which is nil.
func Deny(e *echo.Context, d core.Decision) error {
	httpresponse.Deny(e.Response(), e.Request(), &d, d.Denial(request{e}))
	return nil
}

// nextAndSettle runs the handler and passes the outcome of the request to the checker. If the
// handler returns an error, nextAndSettle first passes the error to the application's
// HTTPErrorHandler, because the response is not known before that. It also returns the error, for
// the middlewares before the limiter. It does not recover a panic, so that the panic keeps its
// stack.
func nextAndSettle(e *echo.Context, c core.Checker, d core.Decision, next echo.HandlerFunc) (err error) {
	r := request{e}
	watcher, response := httpresponse.NewWatcher(r.Context()), e.Response()
	e.SetResponse(watcher.Wrap(response))
	panicked := true
	defer func() {
		e.SetResponse(response)
		if inner, unwrapErr := echo.UnwrapResponse(response); unwrapErr == nil && inner.Committed {
			watcher.Record(inner.Status)
		}
		c.Settle(r, d, watcher.Outcome(r.Context(), panicked, err, response.Header().Get))
	}()
	if err = next(e); err != nil {
		if app := e.Echo(); app != nil {
			app.HTTPErrorHandler(e, err)
		} else { // a context that a test has made
			_, status := echo.ResolveResponseStatus(response, err)
			watcher.Record(status)
		}
	}
	panicked = false
	return err
}
