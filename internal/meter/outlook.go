package meter

import (
	"math"
	"time"
)

const (
	// Forever is what Wait returns if no waiting helps.
	Forever int64 = math.MaxInt64
	// Never is Forever as a duration.
	Never time.Duration = math.MaxInt64
)

// Duration returns a number of microseconds as a duration, Never for Forever.
func Duration(n int64) time.Duration {
	if n == Forever {
		return Never
	}
	return time.Duration(n) * time.Microsecond
}

// Admits reports whether the limit admits cost hits at now.
func (m *Meter) Admits(w []uint64, now, cost int64) bool {
	switch {
	case cost <= 0:
		return true
	case cost > m.capacity || m.quota == 0:
		return false
	}
	if m.algorithm == TokenBucket {
		return loadCell(w).admitsBucket(m, now, cost)
	}
	return cost <= m.quota-m.used(w, now)
}

// used returns the hits that count at now, for the algorithms that count hits.
func (m *Meter) used(w []uint64, now int64) int64 {
	switch m.algorithm {
	case FixedWindow, Calendar:
		return int64(loadCell(w).a)
	case BucketedWindow:
		return bucketsTotal(w)
	case SlidingLog:
		return logLen(w)
	case InFlight:
		return usedLeases(w)
	case Lockout:
		return loadLockout(w).used(m, now)
	default:
		return loadCell(w).usedSliding(m, now)
	}
}

// Remaining returns the largest cost that Admits would allow at now.
func (m *Meter) Remaining(w []uint64, now int64) int64 {
	if m.quota == 0 {
		return 0
	}
	if m.algorithm == TokenBucket {
		return loadCell(w).leftBucket(m, now)
	}
	return max(0, m.quota-m.used(w, now))
}

// Wait returns how long it takes, without further hits, until cost is admitted:
// 0 if it is admitted now, Forever if it never is. For leases it is a guess.
func (m *Meter) Wait(w []uint64, now, cost int64) int64 {
	switch {
	case cost <= 0:
		return 0
	case cost > m.capacity || m.quota == 0:
		return Forever
	}
	switch m.algorithm {
	case FixedWindow:
		return loadCell(w).waitFixed(m, now, cost)
	case TokenBucket:
		return loadCell(w).waitBucket(m, now, cost)
	case BucketedWindow:
		return m.waitBuckets(w, now, cost)
	case SlidingLog:
		return m.waitLog(w, now, cost)
	case InFlight:
		return m.waitLeases(w, cost)
	case Lockout:
		return loadLockout(w).wait(m, now, cost)
	case Calendar:
		return loadCell(w).waitCalendar(m, now, cost)
	default:
		return loadCell(w).waitSliding(m, now, cost)
	}
}

// Outlook returns what a limit has left for a key: left is the largest cost
// that Admits would allow at now, reset how long it takes, without further hits,
// until the whole capacity is left, and more how long it takes until left grows.
// reset and more are 0 if nothing is missing or the quota is 0.
//
// It returns what Remaining, Wait(Capacity) and Wait(left+1) return. Each
// decision asks for all three, so that they are computed together.
func (m *Meter) Outlook(w []uint64, now int64) (left, reset, more int64) {
	if m.quota == 0 {
		return 0, 0, 0
	}
	switch m.algorithm {
	case FixedWindow:
		return loadCell(w).outlookFixed(m, now)
	case TokenBucket:
		return loadCell(w).outlookBucket(m, now)
	case BucketedWindow:
		return m.outlookBuckets(w, now)
	case SlidingLog:
		return m.outlookLog(w, now)
	case InFlight:
		return m.outlookLeases(w)
	case Lockout:
		return loadLockout(w).outlook(m, now)
	case Calendar:
		return loadCell(w).outlookCalendar(m, now)
	default:
		return loadCell(w).outlookSliding(m, now)
	}
}
