package replay

import (
	"fmt"
	"math/bits"
	"testing"
)

// The ranges of the histogram have no gaps and do not overlap, and a key on either
// side of each boundary is in the range that has its number.
func TestTheRangesOfTheHistogram(t *testing.T) {
	keys := newTally(1000, func(c *keyCount) int64 { return c.requests })
	var all []int64
	for i := range 62 {
		for _, n := range []int64{1<<i - 1, 1 << i, 1<<i + 1} {
			if n > 0 {
				all = append(all, n)
			}
		}
	}
	for i, n := range all {
		keys.atText(fmt.Sprint(i)).requests = n
	}
	bars := (&run{keys: keys}).histogram()
	next := int64(1)
	for i, b := range bars {
		if b.From != next || b.To < b.From {
			t.Errorf("range %d is from %d to %d, want it to begin at %d", i, b.From, b.To, next)
		}
		next = b.To + 1
		var within int64
		for _, n := range all {
			if b.From <= n && n <= b.To {
				within++
			}
		}
		if b.Keys != within {
			t.Errorf("from %d to %d: %d keys, want %d", b.From, b.To, b.Keys, within)
		}
	}
	if most := all[len(all)-1]; len(bars) != bits.Len64(uint64(most)) || bars[len(bars)-1].To < most {
		t.Errorf("%d ranges, the last to %d, want one for %d", len(bars), bars[len(bars)-1].To, most)
	}
}
