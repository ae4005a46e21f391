package login

import (
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
)

// tally counts the differences between the decisions of the guard and those of its
// limiter. The limiter decides more than once on some attempts. Its methods may be
// called concurrently.
type tally struct {
	denied    atomic.Uint64 // denials that another decision has replaced
	degraded  atomic.Uint64 // those of them that are degraded
	overruled atomic.Uint64 // attempts that the limiter allowed and the guard denied

	failed    atomic.Bool   // an attempt has failed
	succeeded atomic.Uint64 // attempts, before the first that has failed
}

// neverFails is how many attempts succeed before the guard says that none has failed.
const neverFails = 100

// succeeds counts a success. It returns true once: if no attempt has failed, and so
// many have succeeded that the handler probably answers a wrong password as it answers
// the right one.
func (t *tally) succeeds() bool {
	return !t.failed.Load() && t.succeeded.Add(1) == neverFails
}

// replaced counts a denial in place of which the limiter decides again.
func (t *tally) replaced(d core.Decision) {
	t.denied.Add(1)
	if d.Degraded {
		t.degraded.Add(1)
	}
}

// Stats returns the numbers of the guard's decisions. Each attempt counts once. Stats
// may be called concurrently.
func (g *Guard) Stats() core.Stats {
	// The order matters: the limiter has already counted everything that is subtracted.
	denied, degraded, overruled := g.tally.denied.Load(), g.tally.degraded.Load(), g.tally.overruled.Load()
	s := g.limiter.Stats()
	s.Denied += overruled - denied
	s.Allowed -= overruled
	s.Degraded -= degraded
	return s
}
