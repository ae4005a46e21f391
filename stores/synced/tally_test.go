package synced

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// The count of a window is its hits less its refunds: what the backend has, what
// is on its way, and what was not sent yet.
func TestTheCountOfAWindow(t *testing.T) {
	s := slot{added: tally{total: 100, sent: 20, diff: 3}}
	if got := s.count(); got != 123 || s.unsent() != 3 {
		t.Errorf("%d hits, %d not sent, want 123 and 3", got, s.unsent())
	}
	s.back = &tally{total: 40, sent: 10, diff: 2}
	if got := s.count(); got != 71 || s.unsent() != 5 {
		t.Errorf("with refunds %d hits, %d not sent, want 71 and 5", got, s.unsent())
	}
	s.back.total = 500 // refunds beyond the hits are no quota
	if got := s.count(); got != 1 {
		t.Errorf("with 500 refunds %d hits, want 3 less 2", got)
	}
	e := entry{current: slot{added: tally{diff: 2}}, previous: slot{added: tally{diff: 2}}}
	if got := e.unsent(); got != 4 {
		t.Errorf("%d hits of both windows are not sent, want 4", got)
	}
}

// Hits that are taken out are first those that the backend has not heard of.
// The others are refunds. No more are taken out than there are.
func TestHitsThatAreTakenOut(t *testing.T) {
	for _, c := range []struct{ hits, unsent, refunds, left int64 }{
		{0, 3, 0, 8}, {2, 1, 0, 6}, {3, 0, 0, 5}, {6, 0, 3, 2}, {8, 0, 5, 0}, {100, 0, 5, 0},
	} {
		s := slot{added: tally{total: 5, diff: 3}}
		s.take(c.hits)
		if got := s.given().diff; s.added.diff != c.unsent || got != c.refunds || s.count() != c.left {
			t.Errorf("of 8 hits, %d are taken out: %d are not sent, %d are refunds, %d are left; want %+v", c.hits, s.added.diff, got, s.count(), c)
		}
	}
}

// Counters that others do not heal are counted: an answer in which the missing
// hits have not become a quarter fewer.
func TestAnswersInWhichOthersHealLittle(t *testing.T) {
	a := tally{total: 1000}
	for i, step := range []struct {
		missing int64
		stalled int
	}{{800, 0}, {800, 1}, {601, 2}, {450, 0}, {338, 0}, {337, 1}, {400, 2}, {100, 0}, {76, 1}} {
		if !a.answered(0, 1000-step.missing, true) || a.loss.stalled != step.stalled || a.loss.missing != step.missing {
			t.Errorf("answer %d, %d hits missing: %+v, want stalled %d", i, step.missing, *a.loss, step.stalled)
		}
	}
	if a.answered(0, 1000, true) || a.loss != nil {
		t.Errorf("nothing is missing: %+v", a.loss)
	}
}

// A process that has counted none of the missing hits pushes all of them after
// three answers in which nobody has, in one answer of four.
func TestWhoHealsAlone(t *testing.T) {
	const tries = 2000
	healed := [5]int{}
	for range tries {
		a := tally{total: 1000}
		for i := range healed {
			a.answered(0, 900, true)
			switch a.loss.heal {
			case 0:
			case 100:
				healed[i]++
			default:
				t.Fatalf("%d hits are pushed, want none or 100", a.loss.heal)
			}
		}
	}
	for i, n := range healed {
		if i < healAlone && n != 0 || i >= healAlone && (n < tries/6 || n > tries/3) {
			t.Errorf("answer %d: %d of %d processes push all, want none in the first three, and then a quarter", i, n, tries)
		}
	}
}

// part rounds up, and does not overflow.
func TestPart(t *testing.T) {
	if got := part(1<<62-1, 1<<62, 1<<62); got != 1<<62-1 {
		t.Errorf("all of 2^62 - 1 is %d", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.Int64Range(1, 1<<62).Draw(t, "all")
		n, of := rapid.Int64Range(1, all).Draw(t, "n"), rapid.Int64Range(0, all).Draw(t, "of")
		want := new(big.Int).Mul(big.NewInt(n), big.NewInt(of))
		want.Add(want, big.NewInt(all-1)).Div(want, big.NewInt(all))
		if got := part(n, of, all); got != want.Int64() {
			t.Errorf("%d of %d × %d: %d, want %v", of, all, n, got, want)
		}
	})
}

// A tally's total never falls, and its count neither, whatever is answered.
func TestATallyNeverFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a tally
		was := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			a.diff += rapid.Int64Range(0, 10).Draw(t, "hits")
			n := a.freeze()
			if low := a.answered(n, rapid.Int64Range(-5, 100).Draw(t, "answer"), rapid.Bool().Draw(t, "sure")); low && a.loss == nil {
				t.Fatal("low without a loss")
			}
			if a.count() < was || a.sent != 0 || a.own > a.total {
				t.Fatalf("%+v, was %d", a, was)
			}
			if a.loss != nil && (a.loss.heal < 0 || a.loss.heal > a.loss.missing || a.loss.missing > a.total) {
				t.Fatalf("%+v", a.loss)
			}
			was = a.count()
		}
	})
}
