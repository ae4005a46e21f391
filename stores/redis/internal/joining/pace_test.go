package joining

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The limit follows from the fastest exchange of those in
// the running count and in the count before it. One slow exchange raises nothing,
// and one fast exchange lowers the limit until its count is over and the next one too.
func TestTheLimitFollowsTheFastestExchangeOfTheLastCounts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := pace{atOnce: fewest}
		var all []time.Duration // in the order in which they ended
		// All exchanges are noted; the time of a few is drawn.
		for len(all) < 4*counted {
			took := time.Duration(rapid.Int64Range(0, 1500).Draw(r, "took")) * time.Microsecond
			for range rapid.SampledFrom([]int{1, 1, 100, counted - 1, counted}).Draw(r, "times") {
				p.note(took)
				all = append(all, took)
				running := len(all) % counted
				last := all[max(0, len(all)-running-counted):]
				want := min(max(int(slices.Min(last)/(100*time.Microsecond)), 2), 12)
				if p.atOnce != want {
					r.Fatalf("after %d exchanges the limit is %d, want %d", len(all), p.atOnce, want)
				}
			}
		}
	})
}
