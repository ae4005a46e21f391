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

// Option is an option of [Middleware]: [OnDenied].
type Option func(*options)

type options struct {
	onDenied func(echo.Context, core.Decision) error
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

// Middleware returns a middleware that calls the next handler if c allows the request,
// and writes the response to a denied request. The middleware may be mounted in any number
// of places, and called concurrently.
//
// If a request passes several places in which c is mounted, c counts it once. If the
// request has another method or path in a later place, c decides on these too: see
// [core.Checker]. If a handler passes the request to Echo.ServeHTTP, c counts the request
// again.
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
	p := &passage{request: request{e}}
	p.visit.Place, p.visit.Before = &m.place, lastVisit(e)
	if seen := p.visit.Before.Of(&m.place); seen == nil {
		p.visit.Decision = m.place.Checker.Check(&p.request)
	} else {
		var asked bool
		if p.visit.Decision, asked = m.place.Check(seen, &p.request, origin(e)); !asked {
			return next(e)
		}
	}
	d := &p.visit.Decision
	httprequest.SetHeaders(e.Response().Header(), d)
	if !d.Allowed {
		return m.refuse(p)
	}
	if m.place.Compares(d) {
		o := origin(e)
		p.visit.Origin = &o
	}
	e.Set(mounting.Key, &p.visit)
	if d.NeedsOutcome() {
		return nextAndSettle(&p.request, &p.visit, next)
	}
	return next(e)
}

func (m *middleware) refuse(p *passage) error {
	e := p.request.c
	denial := m.place.Checker.Deny(&p.request, p.visit.Decision)
	if m.onDenied == nil {
		httprequest.Refuse(e.Response(), e.Request(), denial, nil)
		return nil
	}
	var err error
	httprequest.Refuse(e.Response(), e.Request(), denial, func() { err = m.onDenied(e, p.visit.Decision) })
	return err
}

func origin(e echo.Context) mounting.Origin {
	return mounting.Origin{Target: httprequest.Target(e.Request()), Route: e.Path()}
}

// passage holds the request and the visit of one call of the middleware, in one
// allocation.
type passage struct {
	request request
	visit   mounting.Visit
}

func lastVisit(e echo.Context) *mounting.Visit {
	v, _ := e.Get(mounting.Key).(*mounting.Visit)
	return v
}

// DecisionFrom returns the decision with which a limiter has allowed the request. If
// several limiters have allowed it, it is the decision of the last one. The bool is false
// if no limiter has allowed the request.
func DecisionFrom(e echo.Context) (core.Decision, bool) {
	return lastVisit(e).Last()
}

// DecisionsFrom returns the decisions of all limiters that have allowed the request, in
// the order in which they decided.
func DecisionsFrom(e echo.Context) []core.Decision {
	return lastVisit(e).All()
}

// nextAndSettle runs the handler and passes the outcome of the request to the checker. If
// the handler returns an error, nextAndSettle first passes the error to the application's
// HTTPErrorHandler, because the response is not known before that. It also returns the
// error, for the middlewares before the limiter. It does not recover a panic, so that the
// panic keeps its stack.
func nextAndSettle(r *request, v *mounting.Visit, next echo.HandlerFunc) (err error) {
	watcher, response := httprequest.NewWatcher(r.Context()), r.c.Response()
	writer := response.Writer
	response.Writer = watcher.Wrap(writer)
	panicked := true
	defer func() {
		response.Writer = writer
		v.Place.Checker.Settle(r, v.Decision, watcher.Outcome(r.Context(), panicked, err, response.Header().Get))
	}()
	if err = next(r.c); err != nil {
		r.c.Error(err)
	}
	panicked = false
	return err
}
