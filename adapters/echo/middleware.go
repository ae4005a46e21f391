package echolimit

import (
	"time"

	"github.com/labstack/echo/v4"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
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

// ExposeDecision also stores the decision in Echo's context, so that [DecisionFrom] finds
// it after the handlers behind the limiter have returned: in middlewares before the
// limiter, and in the application's HTTPErrorHandler. It costs as much time as the decision
// itself.
func ExposeDecision() Option {
	return func(o *options) { o.expose = true }
}

// Middleware returns a middleware that calls the next handler if c allows the request,
// and writes the response to a denied request. The middleware may be mounted in any number
// of places, and called concurrently.
//
// If a request passes several places in which c is mounted, c counts it once. If the
// request has another method or path in a later place, c decides on these too: see
// [core.Checker]. If a handler passes the request to Echo.ServeHTTP, c counts the request
// again. So it does if one middleware has put a context of its own around Echo's, and
// another one a copy of the request (http.Request.Clone) in the request's place.
//
// Middleware panics if c or an option is nil, or if values of c's type cannot be compared.
func Middleware(c core.Checker, opts ...Option) echo.MiddlewareFunc {
	m := &middleware{place: mounting.NewPlace("echolimit", c)}
	for _, opt := range opts {
		mounting.MustOption("echolimit", opt != nil)
		opt(&m.options)
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(e echo.Context) error { return m.serve(e, next) }
	}
}

type middleware struct {
	place mounting.Place
	options
}

func (m *middleware) serve(e echo.Context, next echo.HandlerFunc) error {
	r := requests.Get().(*request)
	r.c = e
	seen := serving.Seen(e.Request(), own(e), &m.place)
	if seen != nil {
		return m.serveAgain(r, seen, next)
	}
	d := m.place.Checker.Check(r)
	return m.decided(r, &d, next)
}

// serveAgain serves a request that the checker has decided on before.
func (m *middleware) serveAgain(r *request, seen *mounting.Visit, next echo.HandlerFunc) error {
	d, asked := m.place.Check(seen, r, r.origin())
	if asked {
		return m.decided(r, &d, next)
	}
	e := r.c
	r.free()
	return next(e)
}

func (m *middleware) decided(r *request, d *core.Decision, next echo.HandlerFunc) error {
	e := r.c
	if !d.Allowed {
		return m.refuse(r, d)
	}
	httprequest.SetHeaders(e.Response().Header(), d)
	var origin *mounting.Origin
	if m.place.Compares(d) {
		o := r.origin()
		origin = &o
	}
	defer serving.Enter(e.Request(), own(e), &m.place, d, origin).Leave()
	if m.expose {
		e.Set(mounting.Key, m.place.NewVisit(d, exposed(e)))
	}
	if d.NeedsOutcome() {
		return nextAndSettle(r, m.place.Checker, *d, next)
	}
	r.free()
	return next(e)
}

func (m *middleware) refuse(r *request, d *core.Decision) error {
	e, denial := r.c, m.place.Checker.Deny(r, *d)
	if m.onDenied == nil {
		httprequest.Refuse(e.Response(), e.Request(), d, denial, nil)
		return nil
	}
	var err error
	denied := *d
	httprequest.Refuse(e.Response(), e.Request(), d, denial, func() { err = m.onDenied(e, denied) })
	return err
}
