package synced

import (
	"math/bits"
	"math/rand/v2"
)

// tally is one counter of the backend as this process knows it. It only grows.
type tally struct {
	total int64 // in the backend, as far as is known: never falls
	sent  int64 // on the way to the backend
	diff  int64 // not sent yet
	own   int64 // this process's part of total
	loss  *loss // nil: the backend has lost nothing
}

// loss is what the backend has lost of a counter.
type loss struct {
	missing int64 // when it last answered
	heal    int64 // of it, what this process is to send again
	stalled int   // so many answers in a row others have healed little
}

func (t *tally) count() int64 { return t.total + t.sent + t.diff }

// freeze returns the hits that are to be pushed.
func (t *tally) freeze() int64 {
	diff := t.diff
	t.sent += diff
	t.diff = 0
	return diff
}

// thaw undoes freeze for hits that were never on their way.
func (t *tally) thaw(diff int64) {
	t.sent -= diff
	t.diff += diff
}

// healAlone is how many answers in a row must show that others heal little
// before a process sends all that is missing.
const healAlone = 3

// answered processes the backend's answer to a push of diff hits: the counter's
// value after it. sure means that a low value can be told from an old one.
//
// A value below what must be there means that the backend has lost hits: a
// counter was deleted, or a replica took over that had not heard of all. Every
// process that notices sends its own part of what is missing again, at once:
//
//	missing × own / total, rounded up.
//
// If all notice at the same moment, their parts add up to the missing hits and
// less than one hit for each process, because no process knows more than the
// true total. If one notices after another, the later ones find fewer missing.
// Nobody owns the hits of processes that have ended. If the missing hits do not
// become a quarter fewer from one answer to the next, several times in a row, a
// process sends all of them, after a random number of further answers, so that
// not all processes do so at once.
func (t *tally) answered(diff, value int64, sure bool) (low bool) {
	t.sent -= diff
	t.own += diff
	t.total += diff
	value = max(0, value) // it may be somebody else's
	if value >= t.total {
		t.total, t.loss = value, nil
		return false
	}
	if !sure {
		return false
	}
	missing := t.total - value
	l := t.loss
	if l == nil {
		l = new(loss)
		t.loss = l
	}
	if l.missing > 0 && missing > l.missing-l.missing/4 {
		l.stalled++
	} else {
		l.stalled = 0
	}
	l.missing = missing
	l.heal = part(missing, min(max(0, t.own), t.total), t.total)
	if l.stalled >= healAlone && rand.IntN(4) == 0 { //nolint:gosec // it only spreads processes
		l.heal = missing
	}
	return true
}

// part returns n × of / all, rounded up. 0 ≤ of ≤ all, n > 0, all > 0.
func part(n, of, all int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(of))            //nolint:gosec // not negative
	q, rest := bits.Div64(hi%uint64(all), lo, uint64(all)) //nolint:gosec // hi < all, as of ≤ all and n ≤ all
	return int64(q) + int64(min(rest, 1))                  //nolint:gosec // at most n
}

// slot is the count of one window: the hits that were added less those that
// were given back. The backend has a counter for each of the two, so that both
// only grow and a fall always means a loss.
type slot struct {
	back  *tally // nil: nothing was given back
	added tally
}

// count returns the hits of the window, as far as this process knows. If hits were
// given back twice, the backend has more refunds than hits for a moment (see
// tooMuch): that is more quota for nobody.
func (s *slot) count() int64 {
	if s.back == nil {
		return s.added.count()
	}
	pushed := max(0, s.added.total+s.added.sent-s.back.total-s.back.sent)
	return pushed + s.added.diff - s.back.diff
}

// heard processes the value of a counter that was read apart from a push. It
// does nothing during a push, whose hits may be in the value already.
func (s *slot) heard(back bool, value int64) bool {
	t := &s.added
	if back {
		t, value = s.given(), -value
	}
	if t.sent != 0 {
		return false
	}
	t.total = max(t.total, value)
	return true
}

// given returns the tally of what was given back.
func (s *slot) given() *tally {
	if s.back == nil {
		s.back = new(tally)
	}
	return s.back
}

// take takes hits out of the slot, at most as many as it has: first those that
// the backend has not heard of.
func (s *slot) take(hits int64) {
	hits = min(hits, max(0, s.count()))
	unsent := min(hits, s.added.diff)
	s.added.diff -= unsent
	if hits > unsent {
		s.given().diff += hits - unsent
	}
}

// tooMuch is called after a push of refunds has been answered. Two processes
// that reset a key at the same moment, or one that resets and one that refunds,
// refund the same hits. The backend then has more refunds than hits. A process
// turns the part of the surplus that its own push has refunded into hits again.
// The backend applies one push after another, so that each part belongs to one
// process. tooMuch reports whether there is such a part.
func (s *slot) tooMuch(hits int64) bool {
	n := min(hits, s.given().total-s.added.total)
	if n <= 0 {
		return false
	}
	s.added.diff += n
	return true
}

// unsent returns how many hits and refunds the backend has not heard of.
func (s *slot) unsent() int64 {
	if s.back == nil {
		return s.added.diff
	}
	return s.added.diff + s.back.diff
}
