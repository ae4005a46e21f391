// Package ginlimit limits the requests to Gin applications.
//
//	r.GET("/api", ginlimit.PerIP(100, time.Minute), api)
//
// PerIP is the shortest way to start. Middleware accepts every core.Checker: a limiter with any
// rules, a login guard or a set of policies. A handler reads the decision with DecisionFrom, if the
// Middleware has the option ExposeDecision.
//
// Mount the middleware before every middleware that reads the request's body, because a key
// function cannot read a body that was read before.
//
// If a rule depends on the response (core.Rule.Counts and Clears, login guards), the limiter reads
// the response's status when the handlers behind the limiter have returned. If a middleware writes
// the response after these handlers, for instance from c.Errors, mount that middleware behind the
// limiter. Otherwise the limiter cannot know the status: it takes 400 if the handlers have called
// c.Error and have written nothing.
package ginlimit

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

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
// The client address is the address of the connection's peer. Headers that Gin reads do not change
// it. Behind a proxy, the peer is the proxy, so that all clients share one limit. The option
// [keyfuncs.Behind] names the header with the client's address and the proxies that write it:
//
//	ginlimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) gin.HandlerFunc {
	return Middleware(adapter.PerIP(quota, window, opts))
}

// Option is an option of [Middleware]: [OnDenied] or [ExposeDecision].
type Option func(*options)

type options struct {
	onDenied func(*gin.Context, core.Decision)
	expose   bool
}

// OnDenied sets a handler that writes the status and the body of the response to a denied request,
// in place of those that [core.Hooks.OnDisallowed] returns. The header already has the fields of
// the limiter and of OnDisallowed, except the Content-Type. h is called for every decision that is
// not Allowed, including bad requests and failures: see [core.Decision].Reason. It may be called
// concurrently.
func OnDenied(h func(c *gin.Context, d core.Decision)) Option {
	return func(o *options) { o.onDenied = h }
}

// ExposeDecision stores the decision in gin.Context.Keys. [DecisionFrom] finds it there: in the
// handlers behind the limiter, in copies of the context, and after the handlers in the middlewares
// before the limiter. Storing costs as much time as the decision itself.
func ExposeDecision() Option {
	return func(o *options) { o.expose = true }
}

// Middleware returns a handler that calls the next handlers if c allows the request, and writes the
// response to a denied request. The returned handler may be mounted in any number of places, and
// called concurrently. c counts a request each time that the request passes it.
//
// Middleware panics if c or an option is nil.
func Middleware(c core.Checker, opts ...Option) gin.HandlerFunc {
	adapter.MustChecker("ginlimit", c)
	m := &middleware{checker: c}
	adapter.Apply("ginlimit", &m.options, opts)
	return m.serve
}

type middleware struct {
	checker core.Checker
	options
}

func (m *middleware) serve(g *gin.Context) {
	d := m.checker.Check(request{g})
	if !d.Allowed {
		g.Abort()
		m.deny(g, &d)
		return
	}
	httpresponse.SetHeaders(g.Writer.Header(), &d)
	if m.expose || d.Estimated() {
		g.Set(adapter.Key, &adapter.Exposed{Decision: d, Outer: exposed(g)})
	}
	if d.NeedsOutcome() {
		nextAndSettle(g, m.checker, d)
	} else {
		g.Next()
	}
}

func (m *middleware) deny(g *gin.Context, d *core.Decision) {
	denial := m.checker.Deny(request{g}, *d)
	if m.onDenied == nil {
		httpresponse.Deny(g.Writer, g.Request, d, denial)
		return
	}
	httpresponse.SetDenialHeader(g.Writer.Header(), g.Request, d, denial, true)
	m.onDenied(g, *d)
}

// exposed returns the innermost decision that is stored in the context.
func exposed(g *gin.Context) *adapter.Exposed {
	value, _ := g.Get(adapter.Key)
	e, _ := value.(*adapter.Exposed)
	return e
}

// DecisionFrom returns the decision with which a limiter has allowed the request. It finds the
// decision of a Middleware with the option [ExposeDecision], and one whose cost [SetCost] may
// settle. Of several, it returns the innermost: the one of the last limiter that the request has
// passed. The bool is false if there is none.
func DecisionFrom(g *gin.Context) (core.Decision, bool) { return exposed(g).Last() }

// SetCost sets the real cost of the request, in hits, when it is known: the tokens of an answer, or
// the rows read. After the handlers have returned, the limiters charge or refund the difference.
// SetCost returns false if that concerns no rule: see [core.Decision.SetCost].
//
// The last call counts. SetCost may be called concurrently.
func SetCost(g *gin.Context, cost int64) bool { return exposed(g).SetCost(cost) }

// Deny answers a request that a handler denies with a decision of its own, such as that of
// [core.Limiter.Take]. The hooks of the decision's limiter make the response. It has the headers
// that the middleware would set. Deny aborts the chain of handlers. The handler writes nothing
// after it.
func Deny(g *gin.Context, d core.Decision) {
	g.Abort()
	httpresponse.Deny(g.Writer, g.Request, &d, d.Denial(request{g}))
}

// nextAndSettle runs the handlers behind the limiter and passes the outcome of the request to the
// checker. It does not recover a panic, so that the panic keeps its stack.
func nextAndSettle(g *gin.Context, c core.Checker, d core.Decision) {
	w := &watched{ResponseWriter: g.Writer, ctx: g.Request.Context()}
	g.Writer = w
	panicked, errorsBefore := true, len(g.Errors)
	defer func() {
		g.Writer = w.ResponseWriter
		o := adapter.Response{Status: w.Status(), Ended: w.ended, Panicked: panicked, Header: w.Header().Get}
		switch {
		case w.hijacked:
			o.Status = http.StatusSwitchingProtocols
		case !w.Written():
			// Gin writes the status that a handler has set after all handlers.
			o.Ended = adapter.Ended(w.ctx, g.Request.Context())
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
