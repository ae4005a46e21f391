package core

// The state of a SlidingLog: where the oldest hit stands in the ring and how
// many there are, then the ring of the hits' times, oldest first. A hit of
// cost c stands in it c times.
const logHeader = 1

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

func (m *meter) advanceLog(w []uint64, now int64) {
	n := logLen(w)
	if n == 0 {
		return
	}
	newest := int64(*logHit(w, n-1))
	if newest-now >= m.window {
		for i := n - 1; i >= 0 && int64(*logHit(w, i)) > now; i-- {
			*logHit(w, i) = uint64(now)
		}
		newest = now
	}
	now = max(now, newest)
	for n > 0 && int64(*logHit(w, 0)) <= now-m.window {
		n--
		head := logHead(w) + 1
		if head == int64(len(w)-logHeader) {
			head = 0
		}
		setLog(w, head, n)
	}
}

func (m *meter) chargeLog(w []uint64, now, cost int64) {
	n := logLen(w)
	now = m.at(w, now) // the log stays in order
	for i := range cost {
		*logHit(w, n+i) = uint64(now)
	}
	setLog(w, logHead(w), n+cost)
}

func (m *meter) waitLog(w []uint64, now, cost int64) int64 {
	excess := logLen(w) + cost - m.quota
	if excess <= 0 {
		return 0
	}
	return int64(*logHit(w, excess-1)) + m.window - now
}

// refundLog takes out up to cost hits of the time at.
func refundLog(w []uint64, at, cost int64) {
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

func (m *meter) expiryLog(w []uint64) int64 {
	n := logLen(w)
	if n == 0 {
		return 0
	}
	return int64(*logHit(w, n-1)) + m.window
}

func growLog(to, from []uint64) {
	n := logLen(from)
	for i := range n {
		to[logHeader+i] = *logHit(from, i)
	}
	setLog(to, 0, n)
}
