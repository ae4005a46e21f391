package httplimit

import (
	"context"
	"net/http"
	"time"

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
// The address is that of the connection's peer. Behind a proxy
// that is the proxy's, and all clients share one limit. Say then which header
// has the client's address, and which proxies write it:
//
//	httplimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) func(http.Handler) http.Handler {
	return Middleware(core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{core.Per(quota, window)}}},
	})))
}

// Option changes what Middleware does.
type Option func(*options)

type options struct {
	onDenied func(http.ResponseWriter, *http.Request, core.Decision)
	expose   bool
}

// OnDenied hands refused requests to a handler of the application's. The
// response's header has all fields by then that [core.Hooks.OnDisallowed] and
// the limiter have set, the Content-Type of the body that is not sent excepted;
// the handler writes status and body.
func OnDenied(h func(w http.ResponseWriter, r *http.Request, d core.Decision)) Option {
	return func(o *options) { o.onDenied = h }
}

// ExposeDecision makes [DecisionFrom] find the decision in the context of the
// request that the handler gets. That request is a copy: a logger before the
// Middleware does not see there what the router writes into it, the pattern.
func ExposeDecision() Option {
	return func(o *options) { o.expose = true }
}

// Middleware asks c about every request, and passes on those that it allows.
// What it returns may be used for any number of handlers; a request that meets
// c more than once is counted once, and so are requests that a handler makes of
// one with the same context. If it comes back with another method or path, as
// http.StripPrefix can make it, c decides on these too: see [core.Rechecker]. While
// c is mounted in one place only, a handler that calls itself through it is counted
// each time. It panics if c is nil, or of a type whose values cannot be compared.
func Middleware(c core.Checker, opts ...Option) func(http.Handler) http.Handler {
	mounting.MustWork("httplimit", c)
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("httplimit: Middleware: the handler is nil")
		}
		c.Mount()
		return &handler{checker: c, options: o, next: next}
	}
}

type handler struct {
	checker core.Checker
	options
	next http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var (
		d      core.Decision
		before *mounting.Visit
		target mounting.Target
	)
	// A checker that is mounted in one place has not seen the request, unless that
	// handler calls itself.
	mark := h.checker.Mounts() > 1
	if mark {
		var asked bool
		before, target = lastVisit(r.Context()), httprequest.Target(r)
		if d, asked = before.Check(h.checker, httprequest.Request{HTTP: r}, target); !asked {
			h.next.ServeHTTP(w, r)
			return
		}
	} else {
		d = h.checker.Check(httprequest.Request{HTTP: r})
	}
	httprequest.SetHeaders(w.Header(), &d)
	if !d.Allowed {
		h.deny(w, r, d)
		return
	}
	if mark || h.expose {
		r = r.WithContext(context.WithValue(r.Context(), visitKey{}, &mounting.Visit{Checker: h.checker, Decision: d, Target: target, Route: r.Pattern, Before: before}))
	}
	if !d.NeedsOutcome() {
		h.next.ServeHTTP(w, r)
		return
	}
	h.serveAndSettle(w, r, d)
}

func (h *handler) deny(w http.ResponseWriter, r *http.Request, d core.Decision) {
	var handler func()
	if h.onDenied != nil {
		handler = func() { h.onDenied(w, r, d) }
	}
	httprequest.Refuse(w, r, h.checker.Deny(httprequest.Request{HTTP: r}, d), handler)
}

// visitKey is the key of the last visit in a request's context.
type visitKey struct{}

func lastVisit(ctx context.Context) *mounting.Visit {
	v, _ := ctx.Value(visitKey{}).(*mounting.Visit)
	return v
}

// DecisionFrom returns the decision on the request that ctx belongs to: the
// last one, where several limiters have decided. It is sure to find
// one only behind a Middleware with the option ExposeDecision.
func DecisionFrom(ctx context.Context) (core.Decision, bool) {
	return lastVisit(ctx).Last()
}
