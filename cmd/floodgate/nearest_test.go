package main

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
)

// Of any counters, in any order and with repetitions, the nearest are those of a
// plain sort, and the memory is bounded.
func TestTheNearestAreThoseOfAPlainSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := rapid.IntRange(1, 5).Draw(t, "top")
		n, seed := rapid.IntRange(0, 3*slack).Draw(t, "counters"), rapid.IntRange(1, 1000).Draw(t, "seed")
		repeated := rapid.IntRange(1, 50).Draw(t, "repeated")
		found := nearest{top: top}
		best := map[[2]string]float64{} // a plain model: the largest share of each
		for i := range n {
			one := near{name: fmt.Sprint("k", i*seed%997/repeated), limit: core.Limit{Name: fmt.Sprint("l", i%2)}, used: float64(i*seed%101) / 100}
			found.add(one)
			if len(found.held) > 4*top+slack {
				t.Fatalf("%d counters are held", len(found.held))
			}
			id := [2]string{one.name, one.limit.Name}
			best[id] = max(best[id], one.used)
		}
		type row struct {
			id   [2]string
			used float64
		}
		var want []row
		for id, used := range best {
			want = append(want, row{id, used})
		}
		slices.SortFunc(want, func(a, b row) int {
			return cmp.Or(cmp.Compare(b.used, a.used), cmp.Compare(a.id[0], b.id[0]), cmp.Compare(a.id[1], b.id[1]))
		})
		want = want[:min(top, len(want))]
		got := found.list()
		if len(got) != len(want) {
			t.Fatalf("%d are listed, want %d", len(got), len(want))
		}
		for i, one := range got {
			if have := (row{[2]string{one.name, one.limit.Name}, one.used}); have != want[i] {
				t.Fatalf("number %d is %v, want %v", i, have, want[i])
			}
		}
	})
}

// Counters are held until there are more than the bound.
func TestCountersAreHeldUpToTheBound(t *testing.T) {
	n := nearest{top: 1}
	for i := range 4 + slack {
		n.add(near{name: fmt.Sprint(i)})
	}
	if len(n.held) != 4+slack {
		t.Errorf("%d counters are held, want %d", len(n.held), 4+slack)
	}
	if n.add(near{name: "one more"}); len(n.held) != 1 {
		t.Errorf("%d counters are held, want 1", len(n.held))
	}
}
