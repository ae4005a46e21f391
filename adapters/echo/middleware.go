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
// window or an option is wrong, as template.Must does. For the options of
// Middleware, or a store, make a limiter and use Middleware.
//
// The address is that of the connection's peer, and never what Echo itself
// makes of the headers. Behind a proxy
// that is the proxy's, and all clients share one limit. Say then which header
// has the client's address, and which proxies write it:
//
//	echolimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) echo.MiddlewareFunc {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{core.Per(quota, window)}}},
	})))
}

// Option changes what Middleware does.
type Option func(*options)

type options struct {
	onDenied func(echo.Context, core.Decision) error
}

// OnDenied hands refused requests to a handler of the application's. The
// response's header has all fields by then that [core.Hooks.OnDisallowed] and
// the limiter have set, the Content-Type of the body that is not sent excepted;
// the handler writes status and body.
func OnDenied(h func(c echo.Context, d core.Decision) error) Option {
	return func(o *options) { o.onDenied = h }
}

// Middleware asks c about every request, and passes on those that it allows.
// What it returns may be used in any number of places; a request that meets c
// more than once is counted once. If it comes back with another method or path, c
// decides on these too: see [core.Rechecker]. If a handler gives the request to
// Echo.ServeHTTP again, c counts it anew. It panics if c is nil, or of a type whose
// values cannot be compared.
func Middleware(c core.Checker, opts ...Option) echo.MiddlewareFunc {
	mounting.MustWork("echolimit", c)
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	c.Mount()
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(e echo.Context) error { return serve(e, c, &o, next) }
	}
}

func serve(e echo.Context, c core.Checker, o *options, next echo.HandlerFunc) (err error) {
	before, target := lastVisit(e), httprequest.Target(e.Request())
	p := &passage{request: request{e}}
	r := &p.request
	d, asked := before.Check(c, r, target)
	if !asked {
		return next(e)
	}
	httprequest.SetHeaders(e.Response().Header(), &d)
	if !d.Allowed {
		var handler func()
		if o.onDenied != nil {
			handler = func() { err = o.onDenied(e, d) }
		}
		httprequest.Refuse(e.Response(), e.Request(), c.Deny(r, d), handler)
		return err
	}
	p.visit = mounting.Visit{Checker: c, Decision: d, Target: target, Route: r.Route(), Before: before}
	e.Set(mounting.Key, &p.visit)
	if d.NeedsOutcome() {
		return nextAndSettle(r, &p.visit, next)
	}
	return next(e)
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

// DecisionFrom returns the decision on the request: the last one, where several
// limiters have decided.
func DecisionFrom(e echo.Context) (core.Decision, bool) {
	return lastVisit(e).Last()
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
		v.Checker.Settle(r, v.Decision, watcher.Outcome(r.Context(), panicked, err, response.Header().Get))
	}()
	if err = next(r.c); err != nil {
		r.c.Error(err)
	}
	panicked = false
	return err
}
