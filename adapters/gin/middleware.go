package ginlimit

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/adapters/internal/outcome"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// PerIP limits each client address to quota requests per window, counted in
// this process; see [core.Limit] for the ranges. It panics if the quota, the
// window or an option is wrong, as template.Must does. For the options of
// Middleware, or a store, make a limiter and use Middleware.
//
// The address is that of the connection's peer, and never what Gin itself
// makes of the headers. Behind a proxy
// that is the proxy's, and all clients share one limit. Say then which header
// has the client's address, and which proxies write it:
//
//	ginlimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) gin.HandlerFunc {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{core.Per(quota, window)}}},
	})))
}

// Option changes what Middleware does.
type Option func(*options)

type options struct {
	onDenied func(*gin.Context, core.Decision)
}

// OnDenied hands refused requests to a handler of the application's. The
// response's header has all fields by then that [core.Hooks.OnDisallowed] and
// the limiter have set, the Content-Type of the body that is not sent excepted;
// the handler writes status and body.
func OnDenied(h func(c *gin.Context, d core.Decision)) Option {
	return func(o *options) { o.onDenied = h }
}

// Middleware asks c about every request, and passes on those that it allows.
// What it returns may be used in any number of places; a request that meets c
// more than once is counted once. If it comes back with another method or path, c
// decides on these too: see [core.Rechecker]. Engine.HandleContext forgets
// what Gin knows of a request, so that c counts it anew. It panics if c is nil, or
// of a type whose values cannot be compared.
func Middleware(c core.Checker, opts ...Option) gin.HandlerFunc {
	mounting.MustWork("ginlimit", c)
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	c.Mount()
	return func(g *gin.Context) { serve(g, c, &o) }
}

func serve(g *gin.Context, c core.Checker, o *options) {
	before, r, target := lastVisit(g), request{g}, httprequest.Target(g.Request)
	d, asked := before.Check(c, r, target)
	if !asked {
		return
	}
	httprequest.SetHeaders(g.Writer.Header(), &d)
	if !d.Allowed {
		g.Abort()
		httprequest.Refuse(g.Writer, g.Request, c.Deny(r, d), o.handler(g, d))
		return
	}
	g.Set(mounting.Key, &mounting.Visit{Checker: c, Decision: d, Target: target, Route: r.Route(), Before: before})
	if d.NeedsOutcome() {
		nextAndSettle(g, c, d)
	}
}

// handler returns the application's handler for a refused request, nil for
// none.
func (o *options) handler(g *gin.Context, d core.Decision) func() {
	if o.onDenied == nil {
		return nil
	}
	return func() { o.onDenied(g, d) }
}

func lastVisit(g *gin.Context) *mounting.Visit {
	value, _ := g.Get(mounting.Key)
	v, _ := value.(*mounting.Visit)
	return v
}

// DecisionFrom returns the decision on the request: the last one, where several
// limiters have decided.
func DecisionFrom(g *gin.Context) (core.Decision, bool) {
	return lastVisit(g).Last()
}

// nextAndSettle runs the handlers behind this one and reports what became of
// the request. A panic goes on with its own stack: it is not recovered here.
func nextAndSettle(g *gin.Context, c core.Checker, d core.Decision) {
	w := &watched{ResponseWriter: g.Writer, ctx: g.Request.Context()}
	g.Writer = w
	panicked := true
	defer func() {
		g.Writer = w.ResponseWriter
		o := outcome.Response{Status: w.Status(), Ended: w.ended, Panicked: panicked, Header: w.Header().Get}
		switch {
		case w.hijacked:
			o.Status = http.StatusSwitchingProtocols
		case !w.Written():
			// Gin writes the status that a handler has set only after this.
			o.Ended = outcome.Ended(w.ctx, g.Request.Context())
			if panicked {
				o.Status = 0
			}
		}
		c.Settle(request{g}, d, o.Outcome())
	}()
	g.Next()
	panicked = false
}
