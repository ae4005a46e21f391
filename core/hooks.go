package core

import "reflect"

// Hooks are the points at which an application changes what the limiter does.
// Embed [DefaultHooks], or another Hooks to wrap it, and replace what differs.
//
// Hooks run outside all locks and may be called concurrently. A panic in a
// hook is the request's panic: the limiter does not recover it, holds nothing
// while it passes, and has charged nothing twice. KeyExtra and Cost are called
// twice for a request if one of them, or a key function, reads its body.
type Hooks interface {
	// ShouldLimit runs before anything else. A request for which it returns
	// false is neither limited nor counted.
	ShouldLimit(r Request) bool
	// KeyExtra returns text that is joined to every key of the request, so
	// that requests with different extras have separate counters; "" adds
	// nothing. Its errors mean what a KeyFunc's errors mean.
	KeyExtra(r Request) (string, error)
	// Cost returns how many hits the request is worth, 0 or more. A request of
	// cost 0 is allowed and counts nothing. Its errors mean what a
	// KeyFunc's errors mean; a negative cost is such an error.
	Cost(r Request) (int64, error)
	// OnDisallowed returns the response to a denied request. It runs once for each
	// denied request, and in a dry run once for each request that would have been
	// denied, when its result is not used.
	OnDisallowed(r Request, d Decision) Denial
}

// DefaultHooks limits every request except CORS preflights, adds nothing to
// keys, counts one hit, and denies with the standard denial: see
// [DefaultHooks.OnDisallowed].
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

// HookFuncs makes [Hooks] of functions. A nil function does what [DefaultHooks]
// does.
type HookFuncs struct {
	ShouldLimitFunc  func(r Request) bool
	KeyExtraFunc     func(r Request) (string, error)
	CostFunc         func(r Request) (int64, error)
	OnDisallowedFunc func(r Request, d Decision) Denial
}

// ShouldLimit calls ShouldLimitFunc.
func (f HookFuncs) ShouldLimit(r Request) bool {
	if f.ShouldLimitFunc == nil {
		return DefaultHooks{}.ShouldLimit(r)
	}
	return f.ShouldLimitFunc(r)
}

// KeyExtra calls KeyExtraFunc.
func (f HookFuncs) KeyExtra(r Request) (string, error) {
	if f.KeyExtraFunc == nil {
		return DefaultHooks{}.KeyExtra(r)
	}
	return f.KeyExtraFunc(r)
}

// Cost calls CostFunc.
func (f HookFuncs) Cost(r Request) (int64, error) {
	if f.CostFunc == nil {
		return DefaultHooks{}.Cost(r)
	}
	return f.CostFunc(r)
}

// OnDisallowed calls OnDisallowedFunc.
func (f HookFuncs) OnDisallowed(r Request, d Decision) Denial {
	if f.OnDisallowedFunc == nil {
		return DefaultHooks{}.OnDisallowed(r, d)
	}
	return f.OnDisallowedFunc(r, d)
}

// nilHooks returns the name of the part of hooks that is nil, "" if there is none: calling
// what it promotes would panic on the first request.
func nilHooks(hooks Hooks) string {
	v := reflect.ValueOf(hooks)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return v.Type().String()
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return ""
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous && f.Type.Implements(reflect.TypeFor[Hooks]()) && isNil(v.Field(i)) {
			return f.Name
		}
	}
	return ""
}
