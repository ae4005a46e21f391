package core_test

import (
	"strconv"
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

// A counter that is named several times is charged once, however many hits there are and
// wherever the same counter is named again. Counters that differ in one part are different.
func TestACounterThatIsNamedAgainIsChargedOnce(t *testing.T) {
	rule := func(name string) core.Rule {
		return core.Rule{Name: name, Limits: []core.Limit{core.PerMinute(10)}}
	}
	for _, n := range []int{2, 31, 32, 33, 34, 100, 2000} {
		l := newLimiter(t, core.Config{Rules: []core.Rule{rule("a"), rule("b")}}, nil)
		hits := make([]core.Hit, n)
		for i := range hits {
			hits[i] = core.Hit{Rule: "a", Key: strings.Repeat("x", i/8)}
			if i%2 == 1 {
				hits[i].Rule = "b"
			}
			if i%4 > 1 {
				hits[i].Extra = "extra"
			}
		}
		hits[n-1] = hits[0]
		if d, err := l.Take(t.Context(), 3, hits...); err != nil || !d.Allowed {
			t.Fatalf("%d hits: %v, %v", n, d, err)
		}
		for i, h := range hits {
			if d, err := l.Peek(t.Context(), 1, h); err != nil || d.Remaining != 7 {
				t.Fatalf("%d hits: hit %d has %d left (%v), want 7", n, i, d.Remaining, err)
			}
		}
	}
}

func BenchmarkTakeOfManyKeys(b *testing.B) {
	l := core.Must(core.New(core.Config{Name: "l", Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(core.MaxQuota)}}}}))
	hits := make([]core.Hit, 10_000)
	for i := range hits {
		hits[i] = core.Hit{Rule: "r", Key: strconv.Itoa(i)}
	}
	for b.Loop() {
		if _, err := l.Take(b.Context(), 1, hits...); err != nil {
			b.Fatal(err)
		}
	}
}
