package login

import (
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
)

// tally counts where the guard's decisions differ from its limiter's, which is
// asked more than once about some attempts.
type tally struct {
	denied   atomic.Uint64 // denials that another decision has replaced
	degraded atomic.Uint64 // those of them that are degraded
	refused  atomic.Uint64 // what the limiter allowed and OnSuspicion refused
}

// replaced notes that the guard asks again about an attempt that was denied.
func (t *tally) replaced(d core.Decision) {
	t.denied.Add(1)
	if d.Degraded {
		t.degraded.Add(1)
	}
}

// Stats returns what the guard has counted of its decisions. Each attempt
// counts once.
func (g *Guard) Stats() core.Stats {
	// In this order: the limiter has counted by now whatever is taken off.
	denied, degraded, refused := g.tally.denied.Load(), g.tally.degraded.Load(), g.tally.refused.Load()
	s := g.limiter.Stats()
	s.Denied += refused - denied
	s.Allowed -= refused
	s.Degraded -= degraded
	return s
}
