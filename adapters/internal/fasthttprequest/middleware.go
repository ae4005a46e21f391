package fasthttprequest

import (
	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/adapters/internal/adapter"
	"github.com/floodgate-go/floodgate/core"
)

// Middleware is the middleware of a checker. It may be used concurrently.
type Middleware struct {
	major   *Major
	checker core.Checker
	apart   bool // this process is one of several that count for themselves

	// Expose stores each decision in Fiber's locals.
	Expose bool
	// OnDenied, if it is not nil, writes the response to denied requests.
	OnDenied func(Ctx, core.Decision) error
}

// Middleware returns the middleware of c. It panics if c is nil.
func (m *Major) Middleware(c core.Checker) *Middleware {
	adapter.MustChecker(m.Adapter, c)
	return &Middleware{major: m, checker: c, apart: m.countsApart(c)}
}

// Serve calls the next handler if the checker allows the request, and writes the response
// to a denied request.
func (m *Middleware) Serve(f Ctx, fast *fasthttp.RequestCtx) error {
	r := newRequest(m.major, f, fast)
	d := m.checker.Check(r)
	if m.apart {
		m.major.sayApart(d.Limiter())
	}
	setHeaders(fast, &d)
	if !d.Allowed {
		err := m.deny(r, &d)
		r.free()
		return err
	}
	if m.Expose || d.Estimated() {
		// Fiber's Locals takes a value of any type, and would allocate once more.
		fast.SetUserValue(exposedKey{}, &adapter.Exposed{Decision: d, Outer: Exposed(fast)})
	}
	if d.NeedsOutcome() {
		return m.nextAndSettle(r, d)
	}
	r.free()
	return f.Next()
}

// exposedKey is the key of the innermost decision in Fiber's locals.
type exposedKey struct{}

// Exposed returns the innermost decision that is stored for a request, or nil.
func Exposed(fast *fasthttp.RequestCtx) *adapter.Exposed {
	e, _ := fast.UserValue(exposedKey{}).(*adapter.Exposed)
	return e
}

func (m *Middleware) deny(r *Request, d *core.Decision) error {
	denial := m.checker.Deny(r, *d)
	if m.OnDenied == nil {
		deny(r.fast, denial)
		return nil
	}
	setDenialHeader(r.fast, denial, true)
	return m.OnDenied(r.fiber, *d)
}
