package core_test

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// A decision keeps its key, whatever is decided later and however long keys are.
func TestADecisionKeepsItsKey(t *testing.T) {
	var key string
	l := newLimiter(t, core.Config{Rules: []core.Rule{{
		Name: "r", Limits: []core.Limit{core.PerMinute(2)},
		Key: func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, key...), nil },
	}}}, nil)
	var decisions []core.Decision
	want := func(i int) string { return strings.Repeat(string(rune('a'+i%26)), i%150) }
	for i := range 1000 {
		key = want(i)
		decisions = append(decisions, l.Check(&request{}))
	}
	for i, d := range decisions {
		if got := d.Key(); got != want(i) {
			t.Fatalf("decision %d has the key %q, want %q", i, got, want(i))
		}
	}
}
