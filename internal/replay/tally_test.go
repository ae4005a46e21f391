package replay

import "testing"

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
