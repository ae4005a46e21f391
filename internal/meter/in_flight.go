package meter

import (
	"encoding/binary"
	"math"
)

// A limit of leases admits work that is under way: a take adds a lease, which
// ends when it is released, or a window after the take or its last renewal. With
// the leases that have not ended,
//
//	allowed ⇔ their costs, + cost ≤ quota
//
// A renewal counts even if the lease has ended meanwhile, above the quota if need
// be: its holder still runs. Charges and refunds leave leases alone, because they
// say nothing about who runs.
//
// The state is a word with the number of leases, then three words for each: the
// lease, its end and its cost. The order means nothing.
const (
	leasesHeader = 1
	leaseWords   = 3
)

// MaxLeases is the most leases that a state holds: no more are added. A quota is
// at most MaxLogCount; renewals of leases that had ended come on top.
const MaxLeases = 4 * MaxLogCount

// leaseWait is the wait of a cost that is denied, in microseconds. Nobody knows
// when a lease will be released.
const leaseWait = 1_000_000

// Leases reports whether the limit counts leases: Lease, Release and Renew may be
// called.
func (m *Meter) Leases() bool { return m.algorithm == InFlight }

func leases(w []uint64) int {
	if len(w) == 0 {
		return 0
	}
	return int(w[0])
}

// leaseAt returns the words of the i-th lease.
func leaseAt(w []uint64, i int) []uint64 {
	from := leasesHeader + i*leaseWords
	return w[from : from+leaseWords : from+leaseWords]
}

func findLease(w []uint64, lease uint64) int {
	for i := range leases(w) {
		if w[leasesHeader+i*leaseWords] == lease {
			return i
		}
	}
	return -1
}

func dropLease(w []uint64, i int) {
	last := leases(w) - 1
	copy(leaseAt(w, i), leaseAt(w, last))
	w[0] = uint64(last)
}

// Lease adds the lease of a take that has been admitted, with cost slots. The
// state must have room: see Words.
func (m *Meter) Lease(w []uint64, now int64, lease uint64, cost int64) { m.Renew(w, now, lease, cost) }

// Renew makes a lease end a window after now, and adds it if it is not there. The
// state must have room: see Words.
func (m *Meter) Renew(w []uint64, now int64, lease uint64, cost int64) {
	if cost <= 0 {
		return
	}
	end := now + m.window
	if i := findLease(w, lease); i >= 0 {
		l := leaseAt(w, i)
		l[1] = uint64(max(int64(l[1]), end))
		return
	}
	n := leases(w)
	if n >= MaxLeases {
		return
	}
	w[0] = uint64(n + 1)
	l := leaseAt(w, n)
	l[0], l[1], l[2] = lease, uint64(end), uint64(min(cost, MaxCount))
}

// Release ends a lease, and returns whether it was there.
func (m *Meter) Release(w []uint64, lease uint64) bool {
	i := findLease(w, lease)
	if i >= 0 {
		dropLease(w, i)
	}
	return i >= 0
}

// appendLeases writes the number of leases, and of each the lease in eight bytes,
// its end less the one before, and its cost.
func appendLeases(dst []byte, w []uint64) []byte {
	n := leases(w)
	dst = appendCount(dst, uint64(n))
	last := int64(0)
	for i := range n {
		l := leaseAt(w, i)
		dst = binary.LittleEndian.AppendUint64(dst, l[0])
		dst = appendTime(dst, int64(l[1])-last)
		dst = appendCount(dst, l[2])
		last = int64(l[1])
	}
	return dst
}

func (r *Reader) leases() []uint64 {
	n := int(r.Uvarint(MaxLeases))
	if n == 0 || r.Bad || n*10 > len(r.Rest) { // a lease takes ten bytes or more
		r.Bad = r.Bad || n != 0
		return nil
	}
	w := make([]uint64, leasesHeader+n*leaseWords)
	w[0] = uint64(n)
	end := int64(0)
	for i := range n {
		if len(r.Rest) < 8 {
			r.Bad = true
			return nil
		}
		l := leaseAt(w, i)
		l[0] = binary.LittleEndian.Uint64(r.Rest)
		r.Rest = r.Rest[8:]
		end += r.difference()
		l[1], l[2] = uint64(end), r.Uvarint(MaxCount)
		if r.Bad || l[2] == 0 || end > maxTime || end < -maxTime {
			r.Bad = true
			return nil
		}
	}
	return w
}

// difference reads the difference of two times.
func (r *Reader) difference() int64 {
	v, n := binary.Varint(r.Rest)
	if n <= 0 || v > 2*maxTime || v < -2*maxTime {
		r.Bad = true
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// advanceLeases drops the leases that have ended, and shortens those that end two
// windows or more ahead.
func (m *Meter) advanceLeases(w []uint64, now int64) {
	for i := leases(w) - 1; i >= 0; i-- {
		l := leaseAt(w, i)
		switch end := int64(l[1]); {
		case end <= now:
			dropLease(w, i)
		case end-now >= 2*m.window: // only a step of the clock explains it
			l[1] = uint64(now + m.window)
		}
	}
}

// farLeases reports whether advanceLeases shortens a lease.
func (m *Meter) farLeases(w []uint64, now int64) bool {
	return lastEnd(w)-now >= 2*m.window
}

// lastEnd returns when the last of the leases ends, a time long past if there is none.
func lastEnd(w []uint64) int64 {
	end := int64(math.MinInt64 / 2)
	for i := range leases(w) {
		end = max(end, int64(leaseAt(w, i)[1]))
	}
	return end
}

// usedLeases returns the slots that the leases have.
func usedLeases(w []uint64) int64 {
	sum := int64(0)
	for i := range leases(w) {
		sum += int64(leaseAt(w, i)[2])
	}
	return sum
}

func (m *Meter) waitLeases(w []uint64, cost int64) int64 {
	if usedLeases(w)+cost <= m.quota {
		return 0
	}
	return leaseWait
}

// outlookLeases has no waits: nobody knows when a lease will be released.
func (m *Meter) outlookLeases(w []uint64) (left, reset, more int64) {
	return max(0, m.quota-usedLeases(w)), 0, 0
}

func expiryLeases(w []uint64) int64 { return max(0, lastEnd(w)) }
