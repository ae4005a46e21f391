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
// window or an option is invalid, as template.Must does. If you need a store or
// the options of Middleware, make a limiter with [core.New] and use Middleware.
//
// The address is that of the connection's peer, whatever Gin reads in the headers.
// Behind a proxy, the peer is the proxy, so that all clients share one limit: say
// which header has the client's address, and which proxies write it.
//
//	ginlimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) gin.HandlerFunc {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{{Quota: quota, Window: window}}}},
	})))
}

// Option changes what Middleware does.
type Option func(*options)

type options struct {
	onDenied func(*gin.Context, core.Decision)
}

// OnDenied gives denied requests to a handler of the application. The response's
// header then has all fields that the limiter and [core.Hooks.OnDisallowed] set,
// except the Content-Type of the body, which is not sent. The handler writes status
// and body. It is called for every decision that is not Allowed, also for bad
// requests and failures: see [core.Decision].Reason.
func OnDenied(h func(c *gin.Context, d core.Decision)) Option {
	return func(o *options) { o.onDenied = h }
}

// Middleware asks c about every request, and calls the next handler if c allows it.
//
// The result may be used in any number of places. A request that meets c more than
// once is counted once. If it comes back with another method or path, c decides on
// these too: see [core.Checker]. After Engine.HandleContext, which forgets what Gin
// knows of a request, c counts the request again.
//
// Middleware panics if c is nil, or of a type whose values cannot be compared.
func Middleware(c core.Checker, opts ...Option) gin.HandlerFunc {
	m := &middleware{place: mounting.NewPlace("ginlimit", c)}
	for _, opt := range opts {
		opt(&m.options)
	}
	return m.serve
}

type middleware struct {
	place mounting.Place
	options
}

func (m *middleware) serve(g *gin.Context) {
	before := lastVisit(g)
	if seen := before.Of(&m.place); seen != nil {
		m.serveAgain(g, before, seen)
		return
	}
	d := m.place.Checker.Check(request{g})
	m.decided(g, &d, before)
}

// serveAgain serves a request that the checker has decided on before.
func (m *middleware) serveAgain(g *gin.Context, before, seen *mounting.Visit) {
	if d, asked := m.place.Check(seen, request{g}, origin(g)); asked {
		m.decided(g, &d, before)
	}
}

func (m *middleware) decided(g *gin.Context, d *core.Decision, before *mounting.Visit) {
	c, r := m.place.Checker, request{g}
	httprequest.SetHeaders(g.Writer.Header(), d)
	if !d.Allowed {
		g.Abort()
		httprequest.Refuse(g.Writer, g.Request, c.Deny(r, *d), m.handler(g, d))
		return
	}
	v := m.place.NewVisit(d, before)
	if v.Origin != nil {
		*v.Origin = origin(g)
	}
	g.Set(mounting.Key, v)
	if v.Decision.NeedsOutcome() {
		nextAndSettle(g, c, v.Decision)
	}
}

func origin(g *gin.Context) mounting.Origin {
	return mounting.Origin{Target: httprequest.Target(g.Request), Route: g.FullPath()}
}

// handler returns the application's handler for a refused request, nil for
// none.
func (o *options) handler(g *gin.Context, d *core.Decision) func() {
	if o.onDenied == nil {
		return nil
	}
	denied := *d
	return func() { o.onDenied(g, denied) }
}

func lastVisit(g *gin.Context) *mounting.Visit {
	value, _ := g.Get(mounting.Key)
	v, _ := value.(*mounting.Visit)
	return v
}

// DecisionFrom returns the decision on the request, the last one if several
// limiters have decided. The bool is false if no limiter has.
func DecisionFrom(g *gin.Context) (core.Decision, bool) {
	return lastVisit(g).Last()
}

// DecisionsFrom returns the decisions of all limiters that the request has met,
// the first one first.
func DecisionsFrom(g *gin.Context) []core.Decision {
	return lastVisit(g).All()
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
