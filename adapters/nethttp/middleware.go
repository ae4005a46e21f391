package httplimit

import (
	"context"
	"net/http"
	"runtime"
	"time"

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
// gets, so that [DecisionFrom] finds it. By default, the decision is stored only if the
// limiter is mounted in several places, or if [SetCost] may settle it. With ExposeDecision, the handler gets a copy of
// the request. A logger before the Middleware then does not see the pattern that a router
// behind the Middleware writes into the request.
func ExposeDecision() Option {
	return func(o *options) { o.expose = true }
}

// Middleware returns a middleware that calls the handler if c allows the request, and
// writes the response to a denied request. The middleware may be applied to any number of
// handlers, and used concurrently.
//
// If a request passes several places in which c is mounted, c counts it once. A request
// that a handler makes with the context of another request counts as the same request. If
// the request has another method or path in a later place, as after http.StripPrefix, c
// decides on these too: see [core.Checker]. If c is mounted in one place only, and the
// handler passes the request to that place again, c counts the request each time.
//
// Middleware panics if c or an option is nil, or if values of c's type cannot be compared.
func Middleware(c core.Checker, opts ...Option) func(http.Handler) http.Handler {
	m := &middleware{place: mounting.NewPlace("httplimit", c), mounted: mounted(c)}
	for _, opt := range opts {
		mounting.MustOption("httplimit", opt != nil)
		opt(&m.options)
	}
	m.mounted.untilUnused(m, c)
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("httplimit: Middleware: the handler is nil: pass the handler of the allowed requests")
		}
		m.mounted.add()
		return &handler{middleware: m, next: next}
	}
}

type middleware struct {
	place   mounting.Place
	mounted *mounts
	options
}

type handler struct {
	*middleware
	next http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.expose || h.mounted.several() {
		h.serveAndMark(w, r)
	} else {
		d := h.place.Checker.Check(httprequest.Request{HTTP: r})
		switch {
		case !h.admits(w, r, &d):
		case d.Estimated():
			h.mark(w, r, &d, lastVisit(r.Context()))
		default:
			h.serveNext(w, r, &d)
		}
	}
	runtime.KeepAlive(h) // the place must count until the request has passed it
}

// serveAndMark serves a request that the checker may have decided on before, or whose
// handler reads the decision. It stores the decision in the request's context.
func (h *handler) serveAndMark(w http.ResponseWriter, r *http.Request) {
	p, before := &h.place, lastVisit(r.Context())
	var d core.Decision
	// If the checker is mounted in one place only, it counts the request each time.
	if seen := before.Of(p); seen == nil || !h.mounted.several() {
		d = p.Checker.Check(httprequest.Request{HTTP: r})
	} else {
		var asked bool
		if d, asked = p.Check(seen, httprequest.Request{HTTP: r}, origin(r)); !asked {
			h.next.ServeHTTP(w, r)
			return
		}
	}
	if !h.admits(w, r, &d) {
		return
	}
	h.mark(w, r, &d, before)
}

// mark stores the decision in the context of the request that the handler gets.
func (h *handler) mark(w http.ResponseWriter, r *http.Request, d *core.Decision, before *mounting.Visit) {
	v := h.place.NewVisit(d, before)
	if v.Origin != nil {
		*v.Origin = origin(r)
	}
	h.serveNext(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, v)), &v.Decision)
}

// admits sets the headers of a decision. If the request is denied, admits writes the
// response and returns false.
func (h *handler) admits(w http.ResponseWriter, r *http.Request, d *core.Decision) bool {
	if d.Allowed {
		httprequest.SetHeaders(w.Header(), d)
		return true
	}
	var handler func()
	if h.onDenied != nil {
		denied := *d
		handler = func() { h.onDenied(w, r, denied) }
	}
	httprequest.Refuse(w, r, d, h.place.Checker.Deny(httprequest.Request{HTTP: r}, *d), handler)
	return false
}

func (h *handler) serveNext(w http.ResponseWriter, r *http.Request, d *core.Decision) {
	if d.NeedsOutcome() {
		h.serveAndSettle(w, r, d)
	} else {
		h.next.ServeHTTP(w, r)
	}
}

func origin(r *http.Request) mounting.Origin {
	return mounting.Origin{Target: httprequest.Target(r), Route: r.Pattern}
}

// visitKey is the key of the last visit in a request's context.
type visitKey struct{}

func lastVisit(ctx context.Context) *mounting.Visit {
	v, _ := ctx.Value(visitKey{}).(*mounting.Visit)
	return v
}

// DecisionFrom returns the decision with which a limiter has allowed the request that ctx
// belongs to. If several limiters have allowed it, it is the decision of the last one. The
// bool is false if DecisionFrom finds no decision. It is sure to find the decision only
// with the option [ExposeDecision].
func DecisionFrom(ctx context.Context) (core.Decision, bool) {
	return lastVisit(ctx).Last()
}

// DecisionsFrom returns the decisions of all limiters that have allowed the request, in
// the order in which they decided. It is sure to find only those of a Middleware with the
// option [ExposeDecision].
func DecisionsFrom(ctx context.Context) []core.Decision {
	return lastVisit(ctx).All()
}

// Request returns the *http.Request that r stands for, for key functions and hooks. It
// finds that of Gin and Echo too, and returns false for a request of Fiber, gRPC or
// Connect. The caller must not keep the
// result, and reads the body with [core.Request].Body, so that the handler can read it too.
func Request(r core.Request) (*http.Request, bool) {
	h, ok := r.Value(httprequest.Key{}).(*http.Request)
	return h, ok
}
