package httplimit

import (
	"context"
	"net/http"
	"time"

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
// The client address is the address of the connection's peer. Behind a proxy, the peer is
// the proxy, so that all clients share one limit. The option [keyfuncs.Behind] names the
// header with the client's address and the proxies that write it:
//
//	httplimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) func(http.Handler) http.Handler {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{{Quota: quota, Window: window}}}},
	})))
}

// Option is an option of [Middleware]: [OnDenied] or [ExposeDecision].
type Option func(*options)

type options struct {
	onDenied func(http.ResponseWriter, *http.Request, core.Decision)
	expose   bool
}

// OnDenied sets a handler that writes the response to denied requests. By default, the
// response is the one that [core.Hooks.OnDisallowed] returns. When h is called, the
// response's header has the fields of the limiter and of OnDisallowed, except the
// Content-Type. h writes the status and the body. It is called for every decision that is
// not Allowed, also for bad requests and failures: see [core.Decision].Reason. It may be
// called concurrently.
func OnDenied(h func(w http.ResponseWriter, r *http.Request, d core.Decision)) Option {
	return func(o *options) { o.onDenied = h }
}

// ExposeDecision stores the decision in the context of the request that the handler
// gets, so that [DecisionFrom] finds it. The handler then gets a copy of the request. A
// logger before the Middleware does not see the pattern that a router behind the Middleware
// writes into the copy.
func ExposeDecision() Option {
	return func(o *options) { o.expose = true }
}

// Middleware returns a middleware that calls the handler if c allows the request, and
// writes the response to a denied request. The middleware may be applied to any number of
// handlers, and used concurrently. c counts a request each time that the request passes it.
//
// Middleware panics if c or an option is nil.
func Middleware(c core.Checker, opts ...Option) func(http.Handler) http.Handler {
	adapter.MustChecker("httplimit", c)
	m := &middleware{checker: c}
	for _, opt := range opts {
		adapter.MustOption("httplimit", opt != nil)
		opt(&m.options)
	}
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("httplimit: Middleware: the handler is nil: pass the handler of the allowed requests")
		}
		return &handler{middleware: m, next: next}
	}
}

type middleware struct {
	checker core.Checker
	options
}

type handler struct {
	*middleware
	next http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := h.checker.Check(httprequest.Request{HTTP: r})
	if !d.Allowed {
		h.deny(w, r, &d)
		return
	}
	httprequest.SetHeaders(w.Header(), &d)
	if h.expose || d.Estimated() {
		r = withDecision(r, d)
	}
	if d.NeedsOutcome() {
		h.serveAndSettle(w, r, &d)
	} else {
		h.next.ServeHTTP(w, r)
	}
}

// deny writes the response to a denied request.
func (h *handler) deny(w http.ResponseWriter, r *http.Request, d *core.Decision) {
	var handler func()
	if h.onDenied != nil {
		denied := *d
		handler = func() { h.onDenied(w, r, denied) }
	}
	httprequest.Refuse(w, r, d, h.checker.Deny(httprequest.Request{HTTP: r}, *d), handler)
}

// exposedKey is the key of the innermost decision in a request's context.
type exposedKey struct{}

func exposed(ctx context.Context) *adapter.Exposed {
	e, _ := ctx.Value(exposedKey{}).(*adapter.Exposed)
	return e
}

// withDecision returns a copy of the request whose context has the decision.
func withDecision(r *http.Request, d core.Decision) *http.Request {
	ctx := r.Context()
	return r.WithContext(context.WithValue(ctx, exposedKey{}, &adapter.Exposed{Decision: d, Outer: exposed(ctx)}))
}

// DecisionFrom returns the decision with which a limiter has allowed the request that ctx
// belongs to. It finds the decision of a Middleware with the option [ExposeDecision], and
// one whose cost [SetCost] may settle. Of several, it returns the innermost: the one of the
// last limiter that the request has passed. The bool is false if there is none.
func DecisionFrom(ctx context.Context) (core.Decision, bool) { return exposed(ctx).Last() }

// SetCost says what the request has really cost, in hits, once the handler knows: the tokens
// of an answer, the rows that were read. What the limiters have charged for the request is then
// an estimate. After the handlers have returned, the limiters charge what is missing, or give
// back what is too much. [core.Decision.SetCost] tells which rules that concerns. It returns
// false if it concerns none: no rule, and no limiter's hooks, have a Cost of their own.
//
// The last call counts. SetCost may be called concurrently. ctx is the context of the
// request that the handler got, or one made from it.
func SetCost(ctx context.Context, cost int64) bool { return exposed(ctx).SetCost(cost) }

// Refuse answers a request that a handler denies because of a decision of its own, such as
// that of [core.Limiter.Take]: with the response that the hooks of the decision's limiter make, and with
// its headers, as the middleware answers. The handler writes nothing after it.
func Refuse(w http.ResponseWriter, r *http.Request, d core.Decision) {
	httprequest.Refuse(w, r, &d, d.Denial(httprequest.Request{HTTP: r}), nil)
}
