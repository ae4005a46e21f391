package fasthttprequest

import (
	"strings"
	"sync"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
)

// visit is a Visit that is reused for other requests. Only Fiber's locals refer to the
// last visit of a request, and only the last visit refers to the visits before it.
type visit struct {
	mounting.Visit
	Request
	origin mounting.Origin // Visit.Origin points to it
	before *visit          // Visit.Before points to its Visit
	local  bool            // it is the last visit in the locals of a request, or before that
}

var visits = sync.Pool{New: func() any { return new(visit) }}

// newVisit returns a visit. Its Decision may be one of an earlier request: the caller must
// replace it.
func newVisit(m *Major, f Ctx, fast *fasthttp.RequestCtx, p *mounting.Place, before *visit) *visit {
	v := visits.Get().(*visit)
	v.major, v.fiber, v.fast = m, f, fast
	v.Place, v.Origin, v.before, v.Before = p, nil, before, nil
	if before != nil {
		v.Before = &before.Visit
	}
	return v
}

// free returns a visit to the pool. Nothing may refer to the visit any more. The visit keeps
// its context, which Fiber reuses too, so that a hook that keeps a request does not panic.
func (v *visit) free() { visits.Put(v) }

// Close frees the visit and the visits before it. It implements io.Closer: fasthttp closes
// the locals of a request after the response has been sent.
func (v *visit) Close() error {
	for v != nil && v.local {
		before := v.before
		v.local = false
		v.free()
		v = before
	}
	return nil
}

type visitKey struct{}

// lastVisit does not call Fiber's Locals, nor does keep: its argument for a value allocates.
func lastVisit(fast *fasthttp.RequestCtx) *visit {
	if fast == nil { // Fiber has taken its context back
		return nil
	}
	v, _ := fast.UserValue(visitKey{}).(*visit)
	return v
}

// Visited returns the last Visit of a request, or nil if there is none.
func Visited(fast *fasthttp.RequestCtx) *mounting.Visit {
	if v := lastVisit(fast); v != nil {
		return &v.Visit
	}
	return nil
}

// keep makes v the last visit of a request.
func (v *visit) keep() {
	v.local = true
	v.fast.SetUserValue(visitKey{}, v)
}

func (r *Request) origin() mounting.Origin {
	escaped := r.fast.URI().PathOriginal()
	return mounting.Origin{
		Target: mounting.TargetOf(r.fiber.Method(), r.fiber.Path(), unsafe.String(unsafe.SliceData(escaped), len(escaped))),
		Route:  strings.Clone(r.major.Route(r.fiber)),
	}
}
