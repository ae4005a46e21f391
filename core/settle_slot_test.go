package core_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// An adapter settles the decision that has taken a slot, and no other.
func TestWhichDecisionsOnSlotsNeedAnOutcome(t *testing.T) {
	l := newLimiter(t, oneRule(core.InFlight(1)), newClock())
	for round := range 2 { // the second one finds a key that the Memory knows
		d := l.Check(&request{})
		if !d.Allowed || !d.NeedsOutcome() {
			t.Fatalf("round %d: allowed: %t, needs an outcome: %t", round, d.Allowed, d.NeedsOutcome())
		}
		if denied := l.Check(&request{}); denied.Allowed || denied.NeedsOutcome() {
			t.Errorf("round %d, denied: allowed: %t, needs an outcome: %t", round, denied.Allowed, denied.NeedsOutcome())
		}
		l.Settle(&request{}, d, core.Outcome{Status: 200})
	}
}
