package httplimit

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
)

// mounts counts the places in which a checker is mounted. If a checker is mounted in one
// place only, its decisions need not be stored in the requests' contexts. To store one
// costs as much as the decision.
type mounts struct {
	places atomic.Int32 // counts to 2 and no further

	middlewares int // the middlewares in use; guarded by registry
}

// registry has the mounts of all checkers for which a middleware is in use.
var registry struct {
	sync.Mutex
	of map[core.Checker]*mounts
}

// mounted returns the mounts of c and counts a middleware for it.
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

// untilUnused removes c from the registry when the garbage collector has found that
// neither by nor another middleware of c is in use.
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
