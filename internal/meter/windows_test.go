package meter

import "testing"

// Windows says of counts what the meter says of the same hits.
func TestWindowsAgreeWithTheMeter(t *testing.T) {
	for _, l := range []Limit{{Quota: 10, Capacity: 10, Window: minute, Aligned: true}, {Quota: 10, Capacity: 10, Window: minute, Algorithm: FixedWindow, Aligned: true}} {
		w, ok := NewWindows(l)
		if !ok {
			t.Fatal(l)
		}
		m := New(l)
		const start = 29_400_000 * 60_000_000 // a multiple of a minute
		for prev := range int64(12) {
			for cur := range int64(12) {
				for _, e := range []int64{0, 1, 20_000_000, 59_999_999} {
					for cost := range int64(12) {
						words := []uint64{0, 0}
						if prev > 0 {
							m.Charge(words, start-1, prev)
						}
						m.Advance(words, start+e)
						if cur > 0 {
							m.Charge(words, start+e, cur)
						}
						var want Result
						m.Report(&want, words, start+e, cost, m.Allows(words, start+e, cost))
						var got Result
						if w.Take(&got, start, start+e, cur, prev, cost, true); got != want {
							t.Fatalf("%v, %d and %d before, %d µs on, a peek for %d: %+v, want %+v", l, cur, prev, e, cost, got, want)
						}
						if want.Allowed {
							m.Charge(words, start+e, cost)
							m.Report(&want, words, start+e, cost, true)
						}
						if w.Take(&got, start, start+e, cur, prev, cost, false); got != want {
							t.Fatalf("%v, %d and %d before, %d µs on, cost %d: %+v, want %+v", l, cur, prev, e, cost, got, want)
						}
					}
				}
			}
		}
	}
}

// Counts of single windows say nothing of windows that begin at a hit.
func TestOnlyAlignedWindowsAreCountedApart(t *testing.T) {
	if _, ok := NewWindows(Limit{Quota: 1, Capacity: 1, Window: minute}); ok {
		t.Error("a limit whose windows are not aligned is taken")
	}
}

// The weight of the previous window falls from 1 to 0.
func TestTheWeightOfTheWindowBefore(t *testing.T) {
	w, _ := NewWindows(Limit{Quota: 10, Capacity: 10, Window: minute, Aligned: true})
	const start = 29_400_000 * 60_000_000
	for after, want := range map[int64]float64{0: 1, 15 * second: 0.75, 45 * second: 0.25, minute: 1} {
		if got := w.Weight(start + after); got != want {
			t.Errorf("%d µs after the start: %v, want %v", after, got, want)
		}
	}
}

// Counts beyond what a state can hold count as the most that it can.
func TestCountsThatNoStateHolds(t *testing.T) {
	w, _ := NewWindows(Limit{Quota: 10, Capacity: 10, Window: minute, Algorithm: FixedWindow, Aligned: true})
	for count, want := range map[int64]bool{-1 << 40: true, -1: true, 9: true, 10: false, 1<<32 - 1: false, 1 << 32: false, 1<<32 + 1: false, 1 << 40: false} {
		var r Result
		if w.Take(&r, 0, 0, count, 0, 1, true); r.Allowed != want {
			t.Errorf("%d hits: allowed %v, want %v", count, r.Allowed, want)
		}
	}
}
