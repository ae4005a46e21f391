package echolimit

import (
	"time"

	"github.com/labstack/echo/v4"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// PerIP limits each client address to quota requests per window, counted in
// this process; see [core.Limit] for the ranges. It panics if the quota, the
// window or an option is invalid, as template.Must does. If you need a store or
// the options of Middleware, make a limiter with [core.New] and use Middleware.
//
// The address is that of the connection's peer, whatever Echo reads in the headers.
// Behind a proxy, the peer is the proxy, so that all clients share one limit: say
// which header has the client's address, and which proxies write it.
//
//	echolimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) echo.MiddlewareFunc {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{{Quota: quota, Window: window}}}},
	})))
}

// Option changes what Middleware does.
type Option func(*options)

type options struct {
	onDenied func(echo.Context, core.Decision) error
}

// OnDenied gives denied requests to a handler of the application. The response's
// header then has all fields that the limiter and [core.Hooks.OnDisallowed] set,
// except the Content-Type of the body, which is not sent. The handler writes status
// and body. It is called for every decision that is not Allowed, also for bad
// requests and failures: see [core.Decision].Reason.
func OnDenied(h func(c echo.Context, d core.Decision) error) Option {
	return func(o *options) { o.onDenied = h }
}

// Middleware asks c about every request, and calls the next handler if c allows it.
//
// The result may be used in any number of places. A request that meets c more than
// once is counted once. If it comes back with another method or path, c decides on
// these too: see [core.Checker]. If a handler gives the request to Echo.ServeHTTP
// again, c counts it again.
//
// Middleware panics if c is nil, or of a type whose values cannot be compared.
func Middleware(c core.Checker, opts ...Option) echo.MiddlewareFunc {
	m := &middleware{place: mounting.NewPlace("echolimit", c)}
	for _, opt := range opts {
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

// passage is what one request needs on its way through one limiter.
type passage struct {
	request request
	visit   mounting.Visit
}

func lastVisit(e echo.Context) *mounting.Visit {
	v, _ := e.Get(mounting.Key).(*mounting.Visit)
	return v
}

// DecisionFrom returns the decision on the request, the last one if several
// limiters have decided. The bool is false if no limiter has.
func DecisionFrom(e echo.Context) (core.Decision, bool) {
	return lastVisit(e).Last()
}

// DecisionsFrom returns the decisions of all limiters that the request has met,
// the first one first.
func DecisionsFrom(e echo.Context) []core.Decision {
	return lastVisit(e).All()
}

// nextAndSettle runs the handler and reports what became of the request. An
// error that it returns is given to the application's error handler here, as
// what the client sees is known only then; who comes before gets the error as
// well, with the response written. A panic goes on with its own stack: it is not
// recovered here.
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
