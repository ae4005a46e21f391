package fasthttprequest

import (
	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
)

// Middleware is the middleware of a checker. It may be used concurrently.
type Middleware struct {
	major *Major
	place mounting.Place
	apart bool // this process is one of several that count for themselves

	// OnDenied, if it is not nil, writes the response to denied requests.
	OnDenied func(Ctx, core.Decision) error
}

// Middleware returns the middleware of c. It panics if c is nil or cannot be compared.
func (m *Major) Middleware(c core.Checker) *Middleware {
	return &Middleware{major: m, place: mounting.NewPlace(m.Adapter, c), apart: m.countsApart(c)}
}

// Serve calls the next handler if the checker allows the request, and writes the response
// to a denied request.
func (m *Middleware) Serve(f Ctx, fast *fasthttp.RequestCtx) error {
	v := newVisit(m.major, f, fast, &m.place, lastVisit(fast))
	r := &v.Request
	if seen := v.Before.Of(&m.place); seen == nil {
		v.Decision = m.place.Checker.Check(r)
	} else {
		var asked bool
		if v.Decision, asked = m.place.Check(seen, r, r.origin()); !asked {
			v.free()
			return f.Next()
		}
	}
	if m.apart {
		m.major.sayApart(v.Decision.Limiter)
	}
	setHeaders(fast, &v.Decision)
	if !v.Decision.Allowed {
		err := m.refuse(r, &v.Decision)
		v.free()
		return err
	}
	if m.place.Compares(&v.Decision) {
		v.origin = r.origin()
		v.Origin = &v.origin
	}
	v.keep()
	if v.Decision.NeedsOutcome() {
		return m.major.nextAndSettle(f, fast, m.place.Checker, v.Decision)
	}
	return f.Next()
}

func (m *Middleware) refuse(r *Request, d *core.Decision) error {
	denial := m.place.Checker.Deny(r, *d)
	if m.OnDenied == nil {
		refuse(r.fast, denial)
		return nil
	}
	setDenialHeader(r.fast, denial, true)
	return m.OnDenied(r.fiber, *d)
}
