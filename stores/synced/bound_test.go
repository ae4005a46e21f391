package synced_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// A limiter that is changed keeps the counts of the limits that stay, each its
// own, and a new limit begins with none.
func TestReconfigureKeepsTheCountsOfEachLimit(t *testing.T) {
	s := newStore(t, nil, synced.Config{Interval: -1})
	hit := core.Hit{Rule: "r", Key: "k"}
	config := func(limits ...core.Limit) core.Config {
		return core.Config{Name: "api", Store: s, Rules: []core.Rule{{Name: "r", Limits: limits}}}
	}
	windows := []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour}
	l := core.Must(core.New(config(aligned(100, windows[0]))))
	// Hits are added with more and more limits, so that each has another count.
	for n := 1; n <= len(windows); n++ {
		var limits []core.Limit
		for _, w := range windows[:n] {
			limits = append(limits, aligned(100, w))
		}
		if err := l.Reconfigure(config(limits...)); err != nil {
			t.Fatal(err)
		}
		if d, err := l.Take(t.Context(), 10, hit); err != nil || !d.Allowed {
			t.Fatalf("%v, %v", d, err)
		}
	}
	for round := range 3 {
		for i, w := range windows {
			if err := l.Reconfigure(config(aligned(100, w))); err != nil {
				t.Fatal(err)
			}
			if got, want := left(t, l, "k"), int64(100-10*(len(windows)-i)); got != want {
				t.Errorf("round %d: %d left of the limit of %v, want %d", round, got, w, want)
			}
		}
	}
}
