package meter

import "encoding/binary"

// A sliding log keeps the time of every hit. With W the window's length,
//
//	allowed ⇔ hits with now − time < W, + cost ≤ quota
//
// It is the "moving window" of
// https://limits.readthedocs.io/en/stable/strategies.html, exact at the cost of
// one word for each hit.
//
// The state is a word with the place of the oldest hit in the ring and the
// number of hits, then the ring of times, oldest first. A hit of cost c is c
// times in it.
const logHeader = 1

type slidingLog struct{}

func logLen(w []uint64) int64 {
	if len(w) == 0 {
		return 0
	}
	return int64(w[0] >> 32)
}

func logHead(w []uint64) int64 { return int64(uint32(w[0])) }

func setLog(w []uint64, head, n int64) { w[0] = uint64(n)<<32 | uint64(head) }

// logHit returns the i-th oldest hit.
func logHit(w []uint64, i int64) *uint64 {
	ring := w[logHeader:]
	i += logHead(w)
	if i >= int64(len(ring)) {
		i -= int64(len(ring))
	}
	return &ring[i]
}

func (*slidingLog) words(m *Meter, w []uint64, cost int64) int {
	n := logLen(w)
	most := m.mostHits(n)
	return logHeader + int(min(n+min(cost, most), most)) // cost may be any number
}

func (*slidingLog) grow(to, from []uint64) {
	n := logLen(from)
	for i := range n {
		to[logHeader+i] = *logHit(from, i)
	}
	setLog(to, 0, n)
}

// append writes the number of hits, the oldest time, and the difference of each further time to the
// one before.
func (*slidingLog) append(_ *Meter, dst []byte, w []uint64) []byte {
	n := logLen(w)
	dst = binary.AppendUvarint(dst, uint64(n))
	last := int64(0)
	for i := range n {
		at := int64(*logHit(w, i))
		if i == 0 {
			dst = binary.AppendVarint(dst, at)
		} else {
			dst = binary.AppendUvarint(dst, uint64(at-last))
		}
		last = at
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
	setLog(w, 0, int64(n))
	return w
}

func (*slidingLog) advance(m *Meter, w []uint64, now int64) (at int64, far bool) {
	n := logLen(w)
	if n == 0 {
		return now, false
	}
	newest := int64(*logHit(w, n-1))
	if far = newest-now >= m.window; far { // only a step of the clock explains it
		for i := n - 1; i >= 0 && int64(*logHit(w, i)) > now; i-- {
			*logHit(w, i) = uint64(now)
		}
		newest = now
	}
	at = max(now, newest)
	for n > 0 && int64(*logHit(w, 0)) <= at-m.window {
		n--
		head := logHead(w) + 1
		if head == int64(len(w)-logHeader) {
			head = 0
		}
		setLog(w, head, n)
	}
	return at, far
}

func (*slidingLog) left(m *Meter, w []uint64, _ int64) int64 { return max(0, m.quota-logLen(w)) }

// wait ends when so many of the oldest hits have left the window that cost fits.
func (*slidingLog) wait(m *Meter, w []uint64, now, cost int64) int64 {
	return int64(*logHit(w, logLen(w)+cost-m.quota-1)) + m.window - now
}

func (*slidingLog) charge(m *Meter, w []uint64, now, cost int64) {
	n := logLen(w)
	if n > 0 {
		now = max(now, int64(*logHit(w, n-1))) // the log stays in order
	}
	most := m.mostHits(n)
	cost = min(cost, most)
	if drop := min(n, n+cost-most); drop > 0 { // the oldest hits make room
		n -= drop
		head := logHead(w) + drop
		if ring := int64(len(w) - logHeader); head >= ring {
			head -= ring
		}
		setLog(w, head, n)
	}
	for i := range cost {
		*logHit(w, n+i) = uint64(now)
	}
	setLog(w, logHead(w), n+cost)
}

// mostHits returns the most hits that a charge leaves in a log of n: the quota, or n if another
// quota has allowed more.
func (m *Meter) mostHits(n int64) int64 { return max(m.quota, n) }

// refund takes up to cost hits of the time at out of the log.
func (*slidingLog) refund(_ *Meter, w []uint64, _, at, _, cost int64) {
	n := logLen(w)
	kept := int64(0)
	for i := range n {
		hit := *logHit(w, i)
		if int64(hit) == at && cost > 0 {
			cost--
			continue
		}
		*logHit(w, kept) = hit
		kept++
	}
	if n > 0 {
		setLog(w, logHead(w), kept)
	}
}

func (*slidingLog) grant(_ *Meter, w []uint64, _, n int64) {
	if hits := logLen(w); hits > 0 {
		setLog(w, logHead(w), hits-min(n, hits))
	}
}

func (*slidingLog) expiry(m *Meter, w []uint64) int64 {
	n := logLen(w)
	if n == 0 {
		return 0
	}
	return int64(*logHit(w, n-1)) + m.window
}

func (*slidingLog) worstCase(m *Meter) int64 { return m.quota }

func (*slidingLog) lifetime(m *Meter) int64 { return m.window }
