package echolimit

import (
	"time"

	"github.com/labstack/echo/v4"

	"github.com/floodgate-go/floodgate/adapters/internal/adapter"
	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// PerIP returns a middleware that allows each client address quota requests per window,
// counted in this process. [core.Limit] has the ranges of quota and window. PerIP panics
// if quota, window or an option is invalid, as template.Must does. For a store, other
// limits or the options of Middleware, make a limiter with [core.New] and use Middleware.
//
// The client address is the address of the connection's peer. Headers that Echo reads do
// not change it. Behind a proxy, the peer is the proxy, so that all clients share one
// limit. The option [keyfuncs.Behind] names the header with the client's address and the
// proxies that write it:
//
//	echolimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) echo.MiddlewareFunc {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{{Quota: quota, Window: window}}}},
	})))
}

// Option is an option of [Middleware]: [OnDenied] or [ExposeDecision].
type Option func(*options)

type options struct {
	onDenied func(echo.Context, core.Decision) error
	expose   bool
}

// OnDenied sets a handler that writes the response to denied requests. By default, the
// response is the one that [core.Hooks.OnDisallowed] returns. When h is called, the
// response's header has the fields of the limiter and of OnDisallowed, except the
// Content-Type. h writes the status and the body. It is called for every decision that is
// not Allowed, also for bad requests and failures: see [core.Decision].Reason. It may be
// called concurrently.
func OnDenied(h func(c echo.Context, d core.Decision) error) Option {
	return func(o *options) { o.onDenied = h }
}

// ExposeDecision stores the decision in Echo's context, so that [DecisionFrom] finds it: in the
// handlers behind the limiter, and after them in the middlewares before it, and in the
// application's HTTPErrorHandler. It
// costs as much time as the decision itself.
func ExposeDecision() Option {
	return func(o *options) { o.expose = true }
}

// Middleware returns a middleware that calls the next handler if c allows the request,
// and writes the response to a denied request. The middleware may be mounted in any number
// of places, and called concurrently. c counts a request each time that the request
// passes it.
//
// Middleware panics if c or an option is nil.
func Middleware(c core.Checker, opts ...Option) echo.MiddlewareFunc {
	adapter.MustChecker("echolimit", c)
	m := &middleware{checker: c}
	for _, opt := range opts {
		adapter.MustOption("echolimit", opt != nil)
		opt(&m.options)
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(e echo.Context) error { return m.serve(e, next) }
	}
}

type middleware struct {
	checker core.Checker
	options
}

func (m *middleware) serve(e echo.Context, next echo.HandlerFunc) error {
	r := requests.Get().(*request)
	r.c = e
	d := m.checker.Check(r)
	if !d.Allowed {
		return m.refuse(r, &d)
	}
	httprequest.SetHeaders(e.Response().Header(), &d)
	if m.expose || d.Estimated() {
		e.Set(adapter.Key, &adapter.Exposed{Decision: d, Outer: exposed(e)})
	}
	if d.NeedsOutcome() {
		return nextAndSettle(r, m.checker, d, next)
	}
	r.free()
	return next(e)
}

func (m *middleware) refuse(r *request, d *core.Decision) error {
	e, denial := r.c, m.checker.Deny(r, *d)
	if m.onDenied == nil {
		httprequest.Refuse(e.Response(), e.Request(), d, denial, nil)
		return nil
	}
	var err error
	denied := *d
	httprequest.Refuse(e.Response(), e.Request(), d, denial, func() { err = m.onDenied(e, denied) })
	return err
}

// exposed returns the innermost decision that is stored in the context.
func exposed(e echo.Context) *adapter.Exposed {
	x, _ := e.Get(adapter.Key).(*adapter.Exposed)
	return x
}

// DecisionFrom returns the decision with which a limiter has allowed the request. It finds
// the decision of a Middleware with the option [ExposeDecision], and one whose cost
// [SetCost] may settle. Of several, it returns the innermost: the one of the last limiter
// that the request has passed. The bool is false if there is none.
//
// If a goroutine outlives the handlers, pass it the decision and not e, because Echo reuses e.
func DecisionFrom(e echo.Context) (core.Decision, bool) { return exposed(e).Last() }

// SetCost says what the request has really cost, in hits, once the handler knows: the tokens
// of an answer, the rows that were read. What the limiters have charged for the request is then
// an estimate. After the handlers have returned, the limiters charge what is missing, or give
// back what is too much. [core.Decision.SetCost] tells which rules that concerns. It returns
// false if it concerns none: no rule, and no limiter's hooks, have a Cost of their own.
//
// The last call counts. SetCost may be called concurrently.
func SetCost(e echo.Context, cost int64) bool { return exposed(e).SetCost(cost) }

// Refuse answers a request that a handler denies because of a decision of its own, such as
// that of [core.Limiter.Take]: with the response that the hooks of the decision's limiter make, and with
// its headers, as the middleware answers. The handler returns its result, which is nil.
func Refuse(e echo.Context, d core.Decision) error {
	httprequest.Refuse(e.Response(), e.Request(), &d, d.Denial(&request{e}), nil)
	return nil
}
