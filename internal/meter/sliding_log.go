package meter

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// A sliding log keeps the time of every hit. With W the window's length,
//
//	allowed ⇔ hits with now − time < W, + cost ≤ quota
//
// It is the "moving window" of https://limits.readthedocs.io/en/stable/strategies.html, exact at
// the cost of one word for each hit.
//
// The state is a word with the place of the oldest hit and the number of hits, then room for times.
// The hits are in one piece, oldest first. A hit of cost c is c times in it. If the piece has
// reached the end of the room, the next charge moves it to the beginning.
const logHeader = 1

type slidingLog struct{}

// words leaves room for more hits than the state may have, so that a charge seldom moves them.
func (*slidingLog) words(m *Meter, w []uint64, cost int64) int {
	n := int64(len(logHits(w)))
	most := m.mostHits(n)
	need := min(n+min(cost, most), most) // cost may be any number
	if have := int64(len(w)) - logHeader; need <= have {
		return len(w)
	}
	return 1 << max(3, bits.Len64(uint64(need+need/4)))
}

// mostHits returns the most hits that a charge leaves in a log of n: the quota, or n if another
// quota has allowed more.
func (m *Meter) mostHits(n int64) int64 { return max(m.Quota, n) }

// logHits returns the hits, oldest first.
func logHits(w []uint64) []uint64 {
	if len(w) == 0 {
		return nil
	}
	return w[logHeader+logFirst(w):][:w[0]>>32]
}

// logFirst returns the place of the oldest hit.
func logFirst(w []uint64) int { return int(uint32(w[0])) }

func setLog(w []uint64, first, n int) { w[0] = uint64(n)<<32 | uint64(first) }

// append writes the number of hits, the oldest time, and the difference of each further time to the
// one before.
func (*slidingLog) append(_ *Meter, dst []byte, w []uint64) []byte {
	hits := logHits(w)
	dst = binary.AppendUvarint(dst, uint64(len(hits)))
	for i, at := range hits {
		if i == 0 {
			dst = binary.AppendVarint(dst, int64(at))
		} else {
			dst = binary.AppendUvarint(dst, at-hits[i-1])
		}
	}
	return dst
}

func (*slidingLog) read(_ *Meter, r *Reader) []uint64 {
	n := r.Uvarint(MaxLogCount)
	if n == 0 || r.Bad || int(n) > len(r.Rest) { // a hit takes a byte or more
		r.Bad = r.Bad || n != 0
		return nil
	}
	w := make([]uint64, logHeader+n)
	at := r.Time()
	for i := range n {
		if i > 0 {
			at += int64(r.Uvarint(maxTime))
		}
		if r.Bad || at > maxTime {
			r.Bad = true
			return nil
		}
		w[logHeader+i] = uint64(at)
	}
	setLog(w, 0, int(n))
	return w
}

func (*slidingLog) advance(m *Meter, w []uint64, now int64) (at int64, far bool) {
	hits := logHits(w)
	if len(hits) == 0 {
		return now, false
	}
	newest := int64(hits[len(hits)-1])
	if far = newest-now >= m.Window; far { // only a step of the clock explains it
		for i, hit := range hits {
			hits[i] = uint64(min(int64(hit), now))
		}
		newest = now
	}
	at = max(now, newest)
	gone := 0
	for gone < len(hits) && int64(hits[gone]) <= at-m.Window {
		gone++
	}
	setLog(w, logFirst(w)+gone, len(hits)-gone)
	return at, far
}

func (*slidingLog) left(m *Meter, w []uint64, _ int64) int64 {
	return max(0, m.Quota-int64(len(logHits(w))))
}

// wait ends when so many of the oldest hits have left the window that cost fits.
func (*slidingLog) wait(m *Meter, w []uint64, now, cost int64) int64 {
	hits := logHits(w)
	return int64(hits[int64(len(hits))+cost-m.Quota-1]) + m.Window - now
}

func (*slidingLog) charge(m *Meter, w []uint64, now, cost int64) {
	hits := logHits(w)
	if n := len(hits); n > 0 {
		now = max(now, int64(hits[n-1])) // the log stays in order
	}
	most := m.mostHits(int64(len(hits)))
	cost = min(cost, most)
	drop := max(0, len(hits)+int(cost-most)) // the oldest hits make room
	first, n := logFirst(w)+drop, len(hits)-drop
	if room := w[logHeader:]; first+n+int(cost) > len(room) {
		copy(room, hits[drop:])
		first = 0
	}
	setLog(w, first, n+int(cost))
	for added := logHits(w)[n:]; len(added) > 0; added = added[1:] {
		added[0] = uint64(now)
	}
}

// refund takes up to cost hits of the time at out of the log.
func (*slidingLog) refund(_ *Meter, w []uint64, _, at, _, cost int64) {
	if len(w) == 0 {
		return
	}
	kept := slices.DeleteFunc(logHits(w), func(hit uint64) bool {
		if int64(hit) != at || cost == 0 {
			return false
		}
		cost--
		return true
	})
	setLog(w, logFirst(w), len(kept))
}

func (*slidingLog) grant(_ *Meter, w []uint64, _, n int64) {
	if hits := logHits(w); len(hits) > 0 {
		setLog(w, logFirst(w), len(hits)-int(min(n, int64(len(hits)))))
	}
}

func (*slidingLog) expiry(m *Meter, w []uint64) int64 {
	hits := logHits(w)
	if len(hits) == 0 {
		return 0
	}
	return int64(hits[len(hits)-1]) + m.Window
}

func (*slidingLog) worstCase(m *Meter) int64 { return m.Quota }

func (*slidingLog) lifetime(m *Meter) int64 { return m.Window }
