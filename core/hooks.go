package core

// Hooks are the points at which an application changes what the limiter does.
// Embed [DefaultHooks], or another Hooks to wrap it, and replace what differs.
//
// Hooks run outside all locks and may be called concurrently. A panic in a
// hook is the request's panic: the limiter does not recover it, holds nothing
// while it passes, and has charged nothing twice. KeyExtra and Cost are called
// twice for a request if they read its body.
type Hooks interface {
	// ShouldLimit runs before anything else. A request for which it returns
	// false is neither limited nor counted.
	ShouldLimit(r Request) bool
	// KeyExtra returns text that is joined to every key of the request, so
	// that requests with different extras have separate counters; "" adds
	// nothing. Its errors mean what a KeyFunc's errors mean.
	KeyExtra(r Request) (string, error)
	// Cost returns how many hits the request is worth, 0 or more. A request of
	// cost 0 is let through and counts nothing. Its errors mean what a
	// KeyFunc's errors mean; a negative cost is such an error.
	Cost(r Request) (int64, error)
	// OnDisallowed returns what a refused client gets. It runs once for each
	// refused request, and in a rehearsal for each request that would have
	// been refused: what it returns is dropped then.
	OnDisallowed(r Request, d Decision) Denial
}

// DefaultHooks limits every request except CORS preflights, adds nothing to
// keys, counts one hit, and refuses with [DefaultDenial].
type DefaultHooks struct{}

// ShouldLimit returns false for a CORS preflight (OPTIONS with a header
// Access-Control-Request-Method, Fetch standard section 4.8), which browsers
// send on their own, and true for all others.
func (DefaultHooks) ShouldLimit(r Request) bool {
	return r.Method() != "OPTIONS" || len(r.HeaderValues("Access-Control-Request-Method")) == 0
}

// KeyExtra returns "".
func (DefaultHooks) KeyExtra(Request) (string, error) { return "", nil }

// Cost returns 1.
func (DefaultHooks) Cost(Request) (int64, error) { return 1, nil }

// OnDisallowed returns DefaultDenial(r, d).
func (DefaultHooks) OnDisallowed(r Request, d Decision) Denial { return DefaultDenial(r, d) }

// HookFuncs is for who prefers functions to a type: its Hooks method makes
// [Hooks] of them. A nil field does as [DefaultHooks] does.
type HookFuncs struct {
	ShouldLimit  func(r Request) bool
	KeyExtra     func(r Request) (string, error)
	Cost         func(r Request) (int64, error)
	OnDisallowed func(r Request, d Decision) Denial
}

// Hooks returns the functions as Hooks. (A struct cannot have a field and a
// method of one name, which is why HookFuncs is not itself Hooks.)
func (f HookFuncs) Hooks() Hooks { return hookFuncs{f} }

type hookFuncs struct{ f HookFuncs }

func (h hookFuncs) ShouldLimit(r Request) bool {
	if h.f.ShouldLimit == nil {
		return DefaultHooks{}.ShouldLimit(r)
	}
	return h.f.ShouldLimit(r)
}

func (h hookFuncs) KeyExtra(r Request) (string, error) {
	if h.f.KeyExtra == nil {
		return DefaultHooks{}.KeyExtra(r)
	}
	return h.f.KeyExtra(r)
}

func (h hookFuncs) Cost(r Request) (int64, error) {
	if h.f.Cost == nil {
		return DefaultHooks{}.Cost(r)
	}
	return h.f.Cost(r)
}

func (h hookFuncs) OnDisallowed(r Request, d Decision) Denial {
	if h.f.OnDisallowed == nil {
		return DefaultHooks{}.OnDisallowed(r, d)
	}
	return h.f.OnDisallowed(r, d)
}
