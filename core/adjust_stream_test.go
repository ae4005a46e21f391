package core_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// A stream that outlives the handler settles its request itself, if the handler has said nothing.
func TestAdjustAfterTheHandlerHasReturned(t *testing.T) {
	cost := func(core.Request) (int64, error) { return 10, nil }
	for _, said := range []bool{false, true} {
		l := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "requests", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}},
			{Name: "words", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost},
			{Name: "returned", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost, Counts: func(core.Request, core.Outcome) bool { return false }},
		}}, newClock())
		d := l.Check(&request{})
		words := int64(50)
		if said {
			d.SetCost(30)
			words = 70
		}
		l.Settle(&request{}, d, core.Outcome{Status: 200})
		for range 2 {
			if err := l.Adjust(t.Context(), d, 50); err != nil {
				t.Error(err)
			}
		}
		for rule, want := range map[string]int64{"requests": 99, "words": words, "returned": 100} {
			if got := left(t, l, rule, "k"); got != want {
				t.Errorf("said %t, %s: %d left, want %d", said, rule, got, want)
			}
		}
	}
}
