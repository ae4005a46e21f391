package ginlimit

import (
	"time"

	"github.com/gin-gonic/gin"

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

// Option is an option of [Middleware]: [OnDenied] or [ExposeDecision].
type Option func(*options)

type options struct {
	onDenied func(*gin.Context, core.Decision)
	expose   bool
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

// ExposeDecision also stores the decision in gin.Context.Keys, so that [DecisionFrom] finds
// it after the handlers behind the limiter have returned: in middlewares before the
// limiter, and in copies of the context. It costs as much time as the decision itself.
func ExposeDecision() Option {
	return func(o *options) { o.expose = true }
}

// Middleware returns a handler that calls the next handlers if c allows the request, and
// writes the response to a denied request. The returned handler may be mounted in any
// number of places, and called concurrently.
//
// If a request passes several places in which c is mounted, c counts it once. If the
// request has another method or path in a later place, c decides on these too: see
// [core.Checker]. If a handler passes the request to Engine.ServeHTTP, c counts the request
// again.
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
	if seen := serving.Seen(g.Request, g, &m.place); seen != nil {
		m.serveAgain(g, seen)
		return
	}
	d := m.place.Checker.Check(request{g})
	m.decided(g, &d)
}

// serveAgain serves a request that the checker has decided on before.
func (m *middleware) serveAgain(g *gin.Context, seen *mounting.Visit) {
	if d, asked := m.place.Check(seen, request{g}, request{g}.origin()); asked {
		m.decided(g, &d)
	}
}

func (m *middleware) decided(g *gin.Context, d *core.Decision) {
	if !d.Allowed {
		g.Abort()
		m.refuse(g, d)
		return
	}
	httprequest.SetHeaders(g.Writer.Header(), d)
	var origin *mounting.Origin
	if m.place.Compares(d) {
		o := request{g}.origin()
		origin = &o
	}
	defer serving.Enter(g.Request, g, &m.place, d, origin).Leave()
	if m.expose {
		g.Set(mounting.Key, m.place.NewVisit(d, exposed(g)))
	}
	if d.NeedsOutcome() {
		nextAndSettle(g, m.place.Checker, *d)
	} else {
		g.Next()
	}
}

func (m *middleware) refuse(g *gin.Context, d *core.Decision) {
	var handler func()
	if m.onDenied != nil {
		denied := *d
		handler = func() { m.onDenied(g, denied) }
	}
	httprequest.Refuse(g.Writer, g.Request, d, m.place.Checker.Deny(request{g}, *d), handler)
}
