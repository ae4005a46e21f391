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

// PerIP limits each client address to quota requests per window, counted in
// this process; see [core.Limit] for the ranges. It panics if the quota, the
// window or an option is invalid, as template.Must does. If you need a store or
// the options of Middleware, make a limiter with [core.New] and use Middleware.
//
// The address is that of the connection's peer.
// Behind a proxy, the peer is the proxy, so that all clients share one limit: say
// which header has the client's address, and which proxies write it.
//
//	httplimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) func(http.Handler) http.Handler {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{{Quota: quota, Window: window}}}},
	})))
}

// Option changes what Middleware does.
type Option func(*options)

type options struct {
	onDenied func(http.ResponseWriter, *http.Request, core.Decision)
	expose   bool
}

// OnDenied gives denied requests to a handler of the application. The response's
// header then has all fields that the limiter and [core.Hooks.OnDisallowed] set,
// except the Content-Type of the body, which is not sent. The handler writes status
// and body. It is called for every decision that is not Allowed, also for bad
// requests and failures: see [core.Decision].Reason.
func OnDenied(h func(w http.ResponseWriter, r *http.Request, d core.Decision)) Option {
	return func(o *options) { o.onDenied = h }
}

// ExposeDecision makes [DecisionFrom] find the decision in the context of the
// request that the handler gets. That request is a copy, so that a logger before
// the Middleware does not see the pattern that a router behind it writes into the
// request.
func ExposeDecision() Option {
	return func(o *options) { o.expose = true }
}

// Middleware asks c about every request, and calls the handler if c allows it.
//
// The result may be used for any number of handlers. A request that meets c more
// than once is counted once, and so are requests that a handler makes with the
// context of the first. If a request comes back with another method or path, as
// after http.StripPrefix, c decides on these too: see [core.Checker]. While c is
// mounted in one place only, a handler that calls itself through c is counted each
// time.
//
// Middleware panics if c is nil, or of a type whose values cannot be compared.
func Middleware(c core.Checker, opts ...Option) func(http.Handler) http.Handler {
	m := &middleware{place: mounting.NewPlace("httplimit", c), mounted: mounted(c)}
	for _, opt := range opts {
		opt(&m.options)
	}
	m.mounted.untilUnused(m, c)
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("httplimit: Middleware: the handler is nil")
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
		if h.admits(w, r, &d) {
			h.serveNext(w, r, &d)
		}
	}
	runtime.KeepAlive(h) // so that it counts as a place until the request has passed it
}

// serveAndMark serves a request that may have met the checker before, or whose
// handler reads the decision.
func (h *handler) serveAndMark(w http.ResponseWriter, r *http.Request) {
	p, before := &h.place, lastVisit(r.Context())
	var d core.Decision
	// The only place of a checker counts a request again if the handler calls itself.
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
	v := p.NewVisit(&d, before)
	if v.Origin != nil {
		*v.Origin = origin(r)
	}
	h.serveNext(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, v)), &v.Decision)
}

// admits sets the headers of a decision and answers the request if it is denied.
func (h *handler) admits(w http.ResponseWriter, r *http.Request, d *core.Decision) bool {
	httprequest.SetHeaders(w.Header(), d)
	if d.Allowed {
		return true
	}
	var handler func()
	if h.onDenied != nil {
		denied := *d
		handler = func() { h.onDenied(w, r, denied) }
	}
	httprequest.Refuse(w, r, h.place.Checker.Deny(httprequest.Request{HTTP: r}, *d), handler)
	return false
}

func (h *handler) serveNext(w http.ResponseWriter, r *http.Request, d *core.Decision) {
	if d.NeedsOutcome() {
		h.serveAndSettle(w, r, *d)
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

// DecisionFrom returns the decision on the request that ctx belongs to, the last
// one if several limiters have decided. Without the option ExposeDecision, it may
// find none; the bool is false then.
func DecisionFrom(ctx context.Context) (core.Decision, bool) {
	return lastVisit(ctx).Last()
}

// DecisionsFrom returns the decisions of all limiters that the request has met,
// the first one first. It is sure to find only those of a Middleware with the
// option ExposeDecision.
func DecisionsFrom(ctx context.Context) []core.Decision {
	return lastVisit(ctx).All()
}
