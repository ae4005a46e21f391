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

// PerIP returns a middleware that allows each client address quota requests per window,
// counted in this process. [core.Limit] has the ranges of quota and window. PerIP panics
// if quota, window or an option is invalid, as template.Must does. For a store, other
// limits or the options of Middleware, make a limiter with [core.New] and use Middleware.
//
// The client address is the address of the connection's peer. Headers that Gin reads do
// not change it. Behind a proxy, the peer is the proxy, so that all clients share one
// limit. The option [keyfuncs.Behind] names the header with the client's address and the
// proxies that write it:
//
//	ginlimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) gin.HandlerFunc {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{{Quota: quota, Window: window}}}},
	})))
}

// Option is an option of [Middleware]: [OnDenied].
type Option func(*options)

type options struct {
	onDenied func(*gin.Context, core.Decision)
}

// OnDenied sets a handler that writes the response to denied requests. By default, the
// response is the one that [core.Hooks.OnDisallowed] returns. When h is called, the
// response's header has the fields of the limiter and of OnDisallowed, except the
// Content-Type. h writes the status and the body. It is called for every decision that is
// not Allowed, also for bad requests and failures: see [core.Decision].Reason. It may be
// called concurrently.
func OnDenied(h func(c *gin.Context, d core.Decision)) Option {
	return func(o *options) { o.onDenied = h }
}

// Middleware returns a handler that calls the next handlers if c allows the request, and
// writes the response to a denied request. The returned handler may be mounted in any
// number of places, and called concurrently.
//
// If a request passes several places in which c is mounted, c counts it once. If the
// request has another method or path in a later place, c decides on these too: see
// [core.Checker]. After Engine.HandleContext, c counts the request again, because
// HandleContext deletes the values that are stored for the request.
//
// Middleware panics if c or an option is nil, or if values of c's type cannot be compared.
func Middleware(c core.Checker, opts ...Option) gin.HandlerFunc {
	m := &middleware{place: mounting.NewPlace("ginlimit", c)}
	for _, opt := range opts {
		mounting.MustOption("ginlimit", opt != nil)
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

// handler returns a function that calls the handler of OnDenied, or nil if there is none.
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

// DecisionFrom returns the decision with which a limiter has allowed the request. If
// several limiters have allowed it, it is the decision of the last one. The bool is false
// if no limiter has allowed the request.
func DecisionFrom(g *gin.Context) (core.Decision, bool) {
	return lastVisit(g).Last()
}

// DecisionsFrom returns the decisions of all limiters that have allowed the request, in
// the order in which they decided.
func DecisionsFrom(g *gin.Context) []core.Decision {
	return lastVisit(g).All()
}

// nextAndSettle runs the handlers behind the limiter and passes the outcome of the
// request to the checker. It does not recover a panic, so that the panic keeps its stack.
func nextAndSettle(g *gin.Context, c core.Checker, d core.Decision) {
	w := &watched{ResponseWriter: g.Writer, ctx: g.Request.Context()}
	g.Writer = w
	panicked, errorsBefore := true, len(g.Errors)
	defer func() {
		g.Writer = w.ResponseWriter
		o := outcome.Response{Status: w.Status(), Ended: w.ended, Panicked: panicked, Header: w.Header().Get}
		switch {
		case w.hijacked:
			o.Status = http.StatusSwitchingProtocols
		case !w.Written():
			// Gin writes the status that a handler has set after all handlers.
			o.Ended = outcome.Ended(w.ctx, g.Request.Context())
			switch {
			case panicked:
				o.Status = 0
			case len(g.Errors) > errorsBefore && o.Status < http.StatusBadRequest:
				o.Status = http.StatusBadRequest // another middleware will write a response: this is no success
			}
		}
		c.Settle(request{g}, d, o.Outcome())
	}()
	g.Next()
	panicked = false
}
