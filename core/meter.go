package core

import "math"

// A meter is a Limit prepared for counting: the arithmetic of one algorithm,
// without a clock and without a lock, over a state of a few words. Times are
// microseconds since the Unix epoch and counts are whole numbers, so that
// nothing is ever rounded but where the algorithm says so.
//
// The state is a slice of words. FixedWindow, SlidingWindow and TokenBucket
// always have two, a FixedWindow with a Lockout three; all zero is the state of a key never seen. BucketedWindow
// and SlidingLog have none for a key never seen, and grow (see words).
//
// The order of calls is: advance, then any of admits, remaining and wait, then
// at most one of charge and refund, after which remaining and wait hold again.
type meter struct {
	algorithm Algorithm
	aligned   bool
	quota     int64
	capacity  int64 // most hits at once: the burst of a token bucket, else the quota
	window    int64
	precision int64
	buckets   int64 // full buckets in a window, n
	narrow    bool  // twice window × capacity, and window × quota, fit in 62 bits
	ahead     int64 // of a narrow token bucket: a debt that takes less time to pay off is not far
	lockout   *lockoutMeter
}

// never is what wait returns where no waiting helps.
const never int64 = math.MaxInt64

// cellWords is the state size of the algorithms that keep a cell.
const cellWords = 2

// mostFixedWords is the largest state that does not grow.
const mostFixedWords = lockoutWords

// fixedWords is the size of a state that does not grow; of one that grows, it
// is the room for a reference in its place.
func (m *meter) fixedWords() int {
	if m.algorithm == lockoutWindow {
		return lockoutWords
	}
	return cellWords
}

func newMeter(l Limit) meter {
	m := meter{
		algorithm: l.identity().algorithm,
		aligned:   l.Aligned,
		quota:     l.Quota,
		capacity:  l.capacity(),
		window:    l.Window.Microseconds(),
	}
	if l.Algorithm == BucketedWindow {
		m.precision = l.Precision.Microseconds()
		m.buckets = m.window / m.precision
	}
	if m.algorithm == lockoutWindow {
		m.lockout = newLockoutMeter(l.Lockout)
	}
	m.narrow = m.capacity == 0 || m.window <= (1<<61)/max(m.capacity, m.quota)
	if m.narrow && m.quota > 0 {
		m.ahead = m.window*m.capacity/m.quota + m.window
	}
	return m
}

func newMeters(limits []Limit) []meter {
	ms := make([]meter, len(limits))
	for i, l := range limits {
		ms[i] = newMeter(l)
	}
	return ms
}

// grows says that the state has no fixed size.
func (m *meter) grows() bool {
	return m.algorithm == BucketedWindow || m.algorithm == SlidingLog
}

// advance brings the state to time now: hits that have left the window are
// dropped. Processes whose clocks differ share a state, so that its time may be
// ahead of now. Less than one window ahead it is believed: the decision is made
// at the stored time (see at), and waits are counted from now. One window ahead
// or more (see far) only a step of the clock explains it: the time is then
// moved back to now, so that no step denies a key for longer than the limit
// itself can.
func (m *meter) advance(w []uint64, now int64) {
	switch m.algorithm {
	case SlidingWindow:
		loadCell(w).rollSliding(m, now).store(w)
	case FixedWindow:
		loadCell(w).rollFixed(m, now).store(w)
	case TokenBucket:
		loadCell(w).rollBucket(m, now).store(w)
	case BucketedWindow:
		m.advanceBuckets(w, now)
	case SlidingLog:
		m.advanceLog(w, now)
	case lockoutWindow:
		loadLockout(w).roll(m, now).store(w)
	}
}

// far reports whether the state's time is so far ahead of now that advance
// moves it back.
func (m *meter) far(w []uint64, now int64) bool {
	switch m.algorithm {
	case TokenBucket:
		c := loadCell(w)
		return m.quota > 0 && c.t > now && c.far(m, now)
	case lockoutWindow:
		return loadLockout(w).far(m, now)
	default:
		return m.at(w, now)-now >= m.window
	}
}

// at returns the time at which a decision is made at now: the state's own time
// if that is later, so that the time of a key never moves back. The state of a
// token bucket has no time of its own: what a later clock has charged is a
// larger debt.
func (m *meter) at(w []uint64, now int64) int64 {
	switch m.algorithm {
	case SlidingWindow, FixedWindow:
		return max(now, loadCell(w).t)
	case BucketedWindow:
		if bucketsTotal(w) > 0 {
			return max(now, int64(w[bucketsNewest])*m.precision)
		}
	case SlidingLog:
		if n := logLen(w); n > 0 {
			return max(now, int64(*logHit(w, n-1)))
		}
	case lockoutWindow:
		return max(now, loadLockout(w).start)
	}
	return now
}

// admits says whether the limit lets cost hits through now.
func (m *meter) admits(w []uint64, now, cost int64) bool {
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
func (m *meter) used(w []uint64, now int64) int64 {
	switch m.algorithm {
	case FixedWindow:
		return int64(loadCell(w).a)
	case BucketedWindow:
		return bucketsTotal(w)
	case SlidingLog:
		return logLen(w)
	case lockoutWindow:
		return loadLockout(w).used(m, now)
	default:
		return loadCell(w).estimate(m, now)
	}
}

// charge adds cost hits at now. The state must have room: see words.
func (m *meter) charge(w []uint64, now, cost int64) {
	if cost <= 0 {
		return
	}
	switch m.algorithm {
	case SlidingWindow, FixedWindow:
		loadCell(w).count(m, now, cost).store(w)
	case TokenBucket:
		loadCell(w).chargeBucket(m, now, cost).store(w)
	case BucketedWindow:
		m.chargeBuckets(w, now, cost)
	case SlidingLog:
		m.chargeLog(w, now, cost)
	case lockoutWindow:
		loadLockout(w).charge(m, now, cost).store(w)
	}
}

// remaining returns the largest cost that admits would allow now.
func (m *meter) remaining(w []uint64, now int64) int64 {
	if m.quota == 0 {
		return 0
	}
	if m.algorithm == TokenBucket {
		return loadCell(w).remainingBucket(m, now)
	}
	return max(0, m.quota-m.used(w, now))
}

// refund takes back cost hits that were charged at the time at, when reset was
// what outlook returned after the charge.
func (m *meter) refund(w []uint64, now, at, reset, cost int64) {
	if cost <= 0 {
		return
	}
	switch m.algorithm {
	case SlidingWindow, FixedWindow:
		loadCell(w).uncount(m, at, cost).store(w)
	case TokenBucket:
		loadCell(w).refundBucket(m, now, at, reset, cost).store(w)
	case BucketedWindow:
		m.refundBuckets(w, at, cost)
	case SlidingLog:
		refundLog(w, at, cost)
	case lockoutWindow:
		loadLockout(w).refund(m, now, at, cost).store(w)
	}
}

// expiry returns a time from which the state means the same as none.
func (m *meter) expiry(w []uint64) int64 {
	switch m.algorithm {
	case FixedWindow:
		return loadCell(w).t + m.window
	case TokenBucket:
		return loadCell(w).t + 1
	case BucketedWindow:
		return m.expiryBuckets(w)
	case SlidingLog:
		return m.expiryLog(w)
	case lockoutWindow:
		return loadLockout(w).expiry(m)
	default:
		return loadCell(w).t + 2*m.window
	}
}

// lifetime returns the longest time from a charge to the expiry of what it
// leaves.
func (m *meter) lifetime() int64 {
	switch m.algorithm {
	case SlidingWindow:
		return 2 * m.window
	case BucketedWindow:
		return m.window + m.precision
	case TokenBucket:
		if m.quota == 0 {
			return 0
		}
		return wideMul(m.window, m.capacity).divUp(m.quota) + 1
	case lockoutWindow:
		return max(m.window, m.lockout.longest+int64(m.lockout.levels)*m.lockout.decay)
	default:
		return m.window
	}
}

// words returns how many words the state needs to take a charge of cost.
func (m *meter) words(w []uint64, cost int64) int {
	switch m.algorithm {
	case BucketedWindow:
		return m.bucketsWords()
	case SlidingLog:
		return logHeader + int(logLen(w)+cost)
	default:
		return m.fixedWords()
	}
}

// grow copies the state from one slice to a longer, zeroed one.
func (m *meter) grow(to, from []uint64) {
	if m.algorithm == SlidingLog {
		growLog(to, from)
		return
	}
	copy(to, from)
}

// anchor returns the start of the window that a first hit at now opens.
func (m *meter) anchor(now int64) int64 {
	if m.aligned {
		return floorTo(now, m.window)
	}
	return now
}
