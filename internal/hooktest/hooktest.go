// Package hooktest makes hooks of functions and limiters for tests.
package hooktest

import "github.com/floodgate-go/floodgate/core"

// Funcs are hooks made of functions. nil means the method of core.DefaultHooks.
type Funcs struct {
	ShouldLimitFunc  func(r core.Request) bool
	KeyExtraFunc     func(r core.Request) (string, error)
	CostFunc         func(r core.Request) (int64, error)
	OnDisallowedFunc func(r core.Request, d core.Decision) core.Denial
}

// ShouldLimit calls ShouldLimitFunc.
func (f Funcs) ShouldLimit(r core.Request) bool {
	if f.ShouldLimitFunc == nil {
		return core.DefaultHooks{}.ShouldLimit(r)
	}
	return f.ShouldLimitFunc(r)
}

// KeyExtra calls KeyExtraFunc.
func (f Funcs) KeyExtra(r core.Request) (string, error) {
	if f.KeyExtraFunc == nil {
		return core.DefaultHooks{}.KeyExtra(r)
	}
	return f.KeyExtraFunc(r)
}

// Cost calls CostFunc.
func (f Funcs) Cost(r core.Request) (int64, error) {
	if f.CostFunc == nil {
		return core.DefaultHooks{}.Cost(r)
	}
	return f.CostFunc(r)
}

// OnDisallowed calls OnDisallowedFunc.
func (f Funcs) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	if f.OnDisallowedFunc == nil {
		return core.DefaultHooks{}.OnDisallowed(r, d)
	}
	return f.OnDisallowedFunc(r, d)
}
