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
// The state begins with four words: the number of leases, the sum of their costs, a time
// before which none of them ends, and one after which none ends. So a decision need not look at
// every lease. Three words for each lease follow: the lease, its end and its cost. The order
// means nothing.
const (
	leasesHeader = 4
	leaseWords   = 3

	leasesSum   = 1
	leasesFirst = 2
	leasesLast  = 3
)

type inFlight struct{ fixedSize }

func (*inFlight) words(_ *Meter, w []uint64, _ int64) int {
	return leasesHeader + leaseWords*(leases(w)+1)
}

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

// findLease returns the index of a lease, -1 if it is not there. Of many, a new one is
// found first.
func findLease(w []uint64, lease uint64) int {
	for i := leases(w) - 1; i >= 0; i-- {
		if w[leasesHeader+i*leaseWords] == lease {
			return i
		}
	}
	return -1
}

// addLease adds a lease. The state must have room.
func addLease(w []uint64, lease uint64, end int64, cost uint64) {
	n := leases(w)
	l := leaseAt(w, n)
	l[0], l[1], l[2] = lease, uint64(end), cost
	w[0], w[leasesSum] = uint64(n+1), w[leasesSum]+cost
	if n == 0 {
		w[leasesFirst], w[leasesLast] = uint64(end), uint64(end)
	}
	boundLeases(w, end)
}

// boundLeases notes the end of a lease.
func boundLeases(w []uint64, end int64) {
	w[leasesFirst] = uint64(min(int64(w[leasesFirst]), end))
	w[leasesLast] = uint64(max(int64(w[leasesLast]), end))
}

func dropLease(w []uint64, i int) {
	last := leases(w) - 1
	w[0], w[leasesSum] = uint64(last), w[leasesSum]-leaseAt(w, i)[2]
	copy(leaseAt(w, i), leaseAt(w, last))
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
		boundLeases(w, end)
		return
	}
	if leases(w) < MaxLeases {
		addLease(w, lease, end, uint64(min(cost, MaxCount)))
	}
}

// Release ends a lease, and returns whether it was there.
func (m *Meter) Release(w []uint64, lease uint64) bool {
	i := findLease(w, lease)
	if i >= 0 {
		dropLease(w, i)
	}
	return i >= 0
}

// append writes the number of leases, and of each the lease in eight bytes,
// its end less the one before, and its cost.
func (*inFlight) append(_ *Meter, dst []byte, w []uint64) []byte {
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

func (*inFlight) read(_ *Meter, r *Reader) []uint64 {
	n := int(r.Uvarint(MaxLeases))
	if n == 0 || r.Bad || n*10 > len(r.Rest) { // a lease takes ten bytes or more
		r.Bad = r.Bad || n != 0
		return nil
	}
	w := make([]uint64, leasesHeader+n*leaseWords)
	end := int64(0)
	for range n {
		if len(r.Rest) < 8 {
			r.Bad = true
			return nil
		}
		lease := binary.LittleEndian.Uint64(r.Rest)
		r.Rest = r.Rest[8:]
		end += r.difference()
		cost := r.Uvarint(MaxCount)
		if r.Bad || cost == 0 || end > maxTime || end < -maxTime {
			r.Bad = true
			return nil
		}
		addLease(w, lease, end, cost)
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

// advance drops the leases that have ended, and shortens those that end two
// windows or more ahead.
func (*inFlight) advance(m *Meter, w []uint64, now int64) {
	n := leases(w)
	if n == 0 || int64(w[leasesFirst]) > now && int64(w[leasesLast])-now < 2*m.window {
		return
	}
	w[leasesFirst], w[leasesLast] = math.MaxInt64, 0
	for i := n - 1; i >= 0; i-- {
		l := leaseAt(w, i)
		end := int64(l[1])
		if end <= now {
			dropLease(w, i)
			continue
		}
		if end-now >= 2*m.window { // only a step of the clock explains it
			end = now + m.window
			l[1] = uint64(end)
		}
		boundLeases(w, end)
	}
}

// far reports whether advance shortens a lease.
func (*inFlight) far(m *Meter, w []uint64, now int64) bool {
	return lastEnd(w)-now >= 2*m.window
}

func (*inFlight) at(_ *Meter, _ []uint64, now int64) int64 { return now }

func (*inFlight) allows(m *Meter, w []uint64, _, cost int64) bool {
	return cost <= m.quota-usedLeases(w)
}

// charge, refund and grant leave leases alone.
func (*inFlight) charge(*Meter, []uint64, int64, int64) {}

func (*inFlight) refund(*Meter, []uint64, int64, int64, int64, int64) {}

func (*inFlight) grant(*Meter, []uint64, int64, int64) {}

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
	if len(w) == 0 {
		return 0
	}
	return int64(w[leasesSum])
}

func (*inFlight) wait(m *Meter, w []uint64, _, cost int64) int64 {
	if usedLeases(w)+cost <= m.quota {
		return 0
	}
	return leaseWait
}

// outlook has no waits: nobody knows when a lease will be released.
func (*inFlight) outlook(m *Meter, w []uint64, _ int64) (left, reset, more int64) {
	return max(0, m.quota-usedLeases(w)), 0, 0
}

func (*inFlight) expiry(_ *Meter, w []uint64) int64 { return max(0, lastEnd(w)) }

func (*inFlight) worstCase(*Meter) int64 { return MaxCount }

func (*inFlight) lifetime(m *Meter) int64 { return m.window }
