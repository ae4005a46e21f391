package replay

import (
	"fmt"
	"strings"
	"testing"
)

// A key that comes after others were dropped may be one of them: what they had
// at most is what it may have missed.
func TestAKeyThatComesAfterATrimMayHaveMissedSome(t *testing.T) {
	tally := newTally(2, func(n *int64) int64 { return *n })
	for range 3 {
		*tally.atText("a")++
		*tally.atText("b")++
	}
	*tally.atText("c")++
	if n := tally.total(tally.entries["c"]); n != 4 {
		t.Errorf("c has %d at most, want the one counted and the 3 of the keys that were dropped", n)
	}
	*tally.atText("a")++
	if n := tally.total(tally.entries["a"]); n < 4 {
		t.Errorf("a has %d at most, and came 4 times", n)
	}
}

// However the keys are spread, and also if all have the same number, so many are held
// at most, and no count is too small by more than is said.
func TestATallyHoldsSoManyKeys(t *testing.T) {
	for name, key := range map[string]func(i int) int{
		"all keys once":    func(i int) int { return i },
		"all keys as many": func(i int) int { return i % 1000 },
		"in runs":          func(i int) int { return i / 7 },
		"one among many": func(i int) int {
			if i%3 == 0 {
				return 0
			}
			return i
		},
	} {
		for _, most := range []int{1, 2, 3, 100} {
			tally := newTally(most, func(n *int64) int64 { return *n })
			counts := map[string]int64{}
			for i := range 10_000 {
				text := fmt.Sprint(key(i))
				counts[text]++
				if i%2 == 0 {
					*tally.atText(text)++
				} else {
					*tally.at([]byte(text))++
				}
				if len(tally.entries) > most {
					t.Fatalf("%s: %d keys are held, want %d at most", name, len(tally.entries), most)
				}
			}
			for text, e := range tally.entries {
				if counts[text] > tally.total(e) || counts[text] < e.value || e.missed > tally.dropped {
					t.Errorf("%s: %s is counted %d times, missed %d, and came %d times", name, text, e.value, e.missed, counts[text])
				}
			}
			if tally.dropped == 0 || tally.dropped > 10_000/int64(most)*2+1 {
				t.Errorf("%s, %d keys: %d may be missed", name, most, tally.dropped)
			}
		}
	}
}

// The list has the largest first, the first in the alphabet of equals, and none that
// has nothing.
func TestTheTopOfATally(t *testing.T) {
	tally := newTally(10, func(n *int64) int64 { return *n })
	for key, n := range map[string]int64{"a": 2, "b": 5, "c": 0, "d": 5, "e": 1} {
		*tally.atText(key) = n
	}
	for n, want := range map[int]string{0: "", 1: "b", 2: "b d", 3: "b d a", 4: "b d a e", 9: "b d a e"} {
		var got []string
		for _, e := range tally.top(n, func(n *int64) int64 { return *n }) {
			got = append(got, e.key)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the top %d are %v, want %s", n, got, want)
		}
	}
}

// The keys that came most often are held.
func TestTheRarerHalfIsDropped(t *testing.T) {
	for _, most := range []int{10, 11} {
		tally := newTally(most, func(n *int64) int64 { return *n })
		for i := range most {
			*tally.atText(fmt.Sprint(i)) = int64(i + 1)
		}
		tally.atText("one more")
		for i := range most {
			if held := tally.entries[fmt.Sprint(i)] != nil; held != (i > most/2) {
				t.Errorf("of %d keys, the one that came %d times is held: %t", most, i+1, held)
			}
		}
		if want := int64(most/2 + 1); tally.dropped != want {
			t.Errorf("of %d keys: %d may be missed, want %d", most, tally.dropped, want)
		}
	}
}
