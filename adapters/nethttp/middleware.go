// Package httplimit limits the requests to net/http handlers, and to routers that use net/http
// handlers, such as http.ServeMux and chi. For Gin, Echo and Fiber, use the packages of these
// frameworks.
//
//	mux.Handle("/api/", httplimit.PerIP(100, time.Minute)(api))
//
// PerIP is the shortest way to start. Middleware accepts every core.Checker: a limiter with any
// rules, a login guard or a set of policies.
//
// Mount the middleware before every middleware that reads the request's body, because a key
// function cannot read a body that was read before. If a key is the route, mount the middleware on
// the routes, because the route is not known before the router has matched.
//
// A handler reads the decision with DecisionFrom, if the Middleware has the option ExposeDecision.
//
// If a rule depends on the response, the handler gets a writer that records the status. It
// implements http.Flusher, http.Hijacker and io.ReaderFrom as the server's does, and has Unwrap for
// http.ResponseController. It does not implement http.Pusher.
package httplimit

import (
	"context"
	"net/http"
	"time"

	"github.com/floodgate-go/floodgate/adapters/internal/adapter"
	"github.com/floodgate-go/floodgate/adapters/internal/httpresponse"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/httprequest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// PerIP returns a middleware that allows each client address quota requests per window, counted in
// this process. [core.Limit] has the ranges of quota and window. PerIP panics if quota, window or
// an option is invalid, as template.Must does. For a store, other limits or the options of
// Middleware, make a limiter with [core.New] and use Middleware.
//
// The client address is the address of the connection's peer. Behind a proxy, the peer is the
// proxy, so that all clients share one limit. The option [keyfuncs.Behind] names the header with
// the client's address and the proxies that write it:
//
//	httplimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) func(http.Handler) http.Handler {
	return Middleware(adapter.PerIP(quota, window, opts))
}

// Option is an option of [Middleware]: [OnDenied] or [ExposeDecision].
type Option func(*options)

type options struct {
	onDenied func(http.ResponseWriter, *http.Request, core.Decision)
	expose   bool
}

// OnDenied sets a handler that writes the status and the body of the response to a denied request,
// in place of those that [core.Hooks.OnDisallowed] returns. The header already has the fields of
// the limiter and of OnDisallowed, except the Content-Type. h is called for every decision that is
// not Allowed, including bad requests and failures: see [core.Decision].Reason. It may be called
// concurrently.
func OnDenied(h func(w http.ResponseWriter, r *http.Request, d core.Decision)) Option {
	return func(o *options) { o.onDenied = h }
}

// ExposeDecision stores the decision in the context of the request that the handler gets, so that
// [DecisionFrom] finds it. The handler then gets a copy of the request. A logger before the
// Middleware does not see the pattern that a router behind the Middleware writes into the copy.
func ExposeDecision() Option {
	return func(o *options) { o.expose = true }
}

// Middleware returns a middleware that calls the handler if c allows the request, and writes the
// response to a denied request. It may be applied to any number of handlers, and used concurrently.
// c counts a request each time that the request passes it.
//
// Middleware panics if c or an option is nil.
func Middleware(c core.Checker, opts ...Option) func(http.Handler) http.Handler {
	adapter.MustChecker("httplimit", c)
	m := &middleware{checker: c}
	adapter.Apply("httplimit", &m.options, opts)
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
	httpresponse.SetHeaders(w.Header(), &d)
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
	denial := h.checker.Deny(httprequest.Request{HTTP: r}, *d)
	if h.onDenied == nil {
		httpresponse.Deny(w, r, d, denial)
		return
	}
	httpresponse.SetDenialHeader(w.Header(), r, d, denial, true)
	h.onDenied(w, r, *d)
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

// DecisionFrom returns the decision with which a limiter has allowed the request that ctx belongs
// to. It finds the decision of a Middleware with the option [ExposeDecision], and one whose cost
// [SetCost] may settle. Of several, it returns that of the last limiter that the request has
// passed. The bool is false if there is none.
func DecisionFrom(ctx context.Context) (core.Decision, bool) { return exposed(ctx).Last() }

// SetCost sets the real cost of the request, in hits, when it is known: the tokens of an answer, or
// the rows read. After the handlers have returned, the limiters charge or refund the difference.
// SetCost returns false if that concerns no rule: see [core.Decision.SetCost].
//
// The last call counts. SetCost may be called concurrently. ctx is the context of the request that
// the handler got, or one made from it.
func SetCost(ctx context.Context, cost int64) bool { return exposed(ctx).SetCost(cost) }

// Deny answers a request that a handler denies with a decision of its own, such as that of
// [core.Limiter.Take]. The hooks of the decision's limiter make the response. It has the headers
// that the middleware would set. The handler writes nothing after it.
func Deny(w http.ResponseWriter, r *http.Request, d core.Decision) {
	httpresponse.Deny(w, r, &d, d.Denial(httprequest.Request{HTTP: r}))
}

// serveAndSettle runs the handler and passes the outcome of the request to the checker. It does not
// recover a panic of the handler, so that the panic keeps its stack.
func (h *handler) serveAndSettle(w http.ResponseWriter, r *http.Request, d *core.Decision) {
	watcher := httpresponse.NewWatcher(r.Context())
	panicked := true
	defer func() {
		o := watcher.Outcome(r.Context(), panicked, nil, w.Header().Get)
		h.checker.Settle(httprequest.Request{HTTP: r}, *d, o)
	}()
	h.next.ServeHTTP(watcher.Wrap(w), r)
	panicked = false
}

// PathValues returns a middleware that stores the parameters of a matched route in the request, so
// that [keyfuncs.PathValue] finds them. It is for routers that store them in another place. vars
// returns the parameters of a request, or nil. It may be called concurrently. Mount the middleware
// behind the router's matching and before the limiter:
//
//	router.Use(httplimit.PathValues(mux.Vars)) // gorilla/mux
//	router.Use(httplimit.PerIP(100, time.Minute))
//
// http.ServeMux needs no such middleware, nor does chi from v5.0.12. PathValues panics if vars is
// nil.
func PathValues(vars func(*http.Request) map[string]string) func(http.Handler) http.Handler {
	if vars == nil {
		panic("httplimit: PathValues: vars is nil: pass a function such as gorilla's mux.Vars")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for name, value := range vars(r) {
				r.SetPathValue(name, value)
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Request returns the *http.Request that r stands for, for key functions and hooks. It finds that
// of Gin and Echo too, and returns false for a request of Fiber, gRPC or Connect. The caller must
// not keep the result. It reads the body with [core.Request].Body, so that the handler can read the
// body too.
func Request(r core.Request) (*http.Request, bool) {
	h, ok := r.Value(httprequest.Key{}).(*http.Request)
	return h, ok
}
