package memtable

import (
	"strconv"
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// The work of an eviction is bounded: the more limits and buckets a rule has,
// the fewer keys are weighed.
func TestFewerKeysAreWeighedIfWeighingIsExpensive(t *testing.T) {
	for _, c := range []struct{ limits, buckets, want int }{
		{limits: 1, want: 8},
		{limits: 3, want: 8},
		{limits: 4, want: 6},
		{limits: 12, want: 2},
		{limits: 25, want: 1},
		{limits: 1, buckets: 60, want: 8},
		{limits: 1, buckets: 10 * 64, want: 2},
		{limits: 1, buckets: 24 * 60, want: 1},
	} {
		var limits []meter.Limit
		for i := range int64(c.limits) {
			limits = append(limits, sliding(5, hour+i))
		}
		if c.buckets > 0 {
			limits[0] = bucketed(5, int64(c.buckets)*minute, minute)
		}
		if got := newLayout(&rule{}, limits, 1000).sample; got != c.want {
			t.Errorf("%d limits, %d buckets: %d keys are weighed, want %d", c.limits, c.buckets, got, c.want)
		}
	}
}

func TestARuleGetsTheTableOfOneThatIsGone(t *testing.T) {
	ts := New(100, 0)
	b := bind(t, ts, perHour(5))
	for i := range 10 {
		b.take(now0, 1)
		next, err := b.Rebind([]Rule{{strconv.Itoa(i), []meter.Limit{perHour(5)}}})
		if err != nil {
			t.Fatal(err)
		}
		if next, err = next.Rebind(nil); err != nil {
			t.Fatal(err)
		}
		if b, err = next.Rebind([]Rule{{"r", []meter.Limit{perHour(5)}}}); err != nil {
			t.Fatal(err)
		}
	}
	// A rule that comes while the one before is still there needs a second table.
	if ts.ids != 2 || len(ts.freeIDs) != 1 {
		t.Errorf("%d tables, of which %d have no rule; want 2 and 1", ts.ids, len(ts.freeIDs))
	}
}
