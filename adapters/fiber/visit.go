package fiberlimit

import (
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
)

// visit is a Visit that is used again for another request. Only Fiber's locals refer
// to the last visit of a request, and only that visit to those before it.
type visit struct {
	mounting.Visit
	origin mounting.Origin // where Visit.Origin points to
	before *visit          // whose Visit is Before
	local  bool            // the locals of a request refer to it
}

var visits = sync.Pool{New: func() any { return new(visit) }}

// newVisit returns a visit that still has the Decision of an earlier request: the
// caller must replace it.
func newVisit(p *mounting.Place, before *visit) *visit {
	v := visits.Get().(*visit)
	v.Place, v.Origin, v.before, v.Before = p, nil, before, nil
	if before != nil {
		v.Before = &before.Visit
	}
	return v
}

// free gives back a visit that nothing refers to.
func (v *visit) free() { visits.Put(v) }

// Close implements io.Closer. fasthttp closes the locals of a request when the
// response has been sent. It frees the visit and those before it.
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

func lastVisit(f *fiber.Ctx) *visit {
	v, _ := f.Locals(visitKey{}).(*visit)
	return v
}

// keep makes v the last visit of a request.
func (v *visit) keep(f *fiber.Ctx) {
	v.local = true
	f.Locals(visitKey{}, v)
}

func (r request) origin() mounting.Origin {
	target := mounting.TargetOf(r.c.Method(), r.c.Path(), utils.UnsafeString(r.c.Context().URI().PathOriginal()))
	return mounting.Origin{Target: target, Route: r.Route()}
}
