package httplimit

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
)

// mounts counts the places in which a checker is mounted. A checker in one place
// need not mark the requests that it allows, which costs as much as the decision.
type mounts struct {
	places atomic.Int32 // it stops after the second

	middlewares int // that are in use; guarded by registry
}

// registry has the mounts of all checkers that a Middleware in use asks.
var registry struct {
	sync.Mutex
	of map[core.Checker]*mounts
}

// mounted returns the mounts of c for another Middleware.
func mounted(c core.Checker) *mounts {
	registry.Lock()
	defer registry.Unlock()
	m := registry.of[c]
	if m == nil {
		if registry.of == nil {
			registry.of = map[core.Checker]*mounts{}
		}
		m = new(mounts)
		registry.of[c] = m
	}
	m.middlewares++
	return m
}

// untilUnused has the registry forget c as soon as the garbage collector has found
// that neither by nor another middleware of c is in use.
func (m *mounts) untilUnused(by *middleware, c core.Checker) {
	runtime.AddCleanup(by, func(c core.Checker) {
		registry.Lock()
		defer registry.Unlock()
		if m.middlewares--; m.middlewares == 0 {
			delete(registry.of, c)
		}
	}, c)
}

func (m *mounts) add() {
	if !m.several() {
		m.places.Add(1)
	}
}

func (m *mounts) several() bool { return m.places.Load() > 1 }
