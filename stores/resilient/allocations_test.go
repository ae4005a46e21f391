//go:build !race

package resilient_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// The race detector makes pools drop things at random.
func TestAllocations(t *testing.T) {
	f := newLink(nil)
	l := newLimiter(t, newStore(t, f, resilient.Config{}), core.PerHour(core.MaxQuota))
	for _, err := range []error{nil, errGone} {
		f.fail(err)
		for range 10 {
			_, _ = take(l)
		}
		if n := testing.AllocsPerRun(1000, func() { _, _ = take(l) }); n >= 1 {
			t.Errorf("the store's error %v: %v allocations a decision", err, n)
		}
	}
}
