package core

import "math"

// lockoutCell is the state of a FixedWindow with a Lockout, in lockoutWords
// words. The window is open from start, where it has any hits, and ends early
// where a wait has: a wait that ended after start has closed it.
type lockoutCell struct {
	start   int64 // of the window
	count   uint32
	strikes uint32 // waits that have not decayed when the last one began, that one included
	until   int64  // end of the last wait, from which strikes decay
}

const lockoutWords = 3

// maxStrikes is above the strikes that any lockout counts: a wait of MinWindow
// that doubles is as long as MaxWindow after 35.
const maxStrikes = 64

// lockoutWindow is the algorithm of a FixedWindow with a Lockout: its counters
// are no other limit's.
const lockoutWindow = Algorithm(len(algorithmNames))

// lockoutMeter is a Lockout in microseconds.
type lockoutMeter struct {
	first, longest, factor, decay int64
	levels                        uint32 // strikes from which the wait is the longest
}

func newLockoutMeter(l Lockout) *lockoutMeter {
	l = l.filled()
	k := &lockoutMeter{
		first:   l.First.Microseconds(),
		longest: l.Max.Microseconds(),
		factor:  l.Factor,
		decay:   l.Decay.Microseconds(),
	}
	for k.levels = 1; l.Factor > 1 && k.wait(k.levels-1) < k.longest; {
		k.levels++
	}
	return k
}

// wait returns the length of the wait after so many others:
// min(first × factor^strikes, longest).
func (k *lockoutMeter) wait(strikes uint32) int64 {
	d := k.first
	for range strikes {
		if d > k.longest/k.factor {
			return k.longest
		}
		if d *= k.factor; k.factor == 1 {
			break
		}
	}
	return min(d, k.longest)
}

func loadLockout(w []uint64) lockoutCell {
	_ = w[2]
	return lockoutCell{int64(w[0]), uint32(w[1]), uint32(w[1] >> 32), int64(w[2])}
}

func (c lockoutCell) store(w []uint64) {
	_ = w[2]
	w[0], w[1], w[2] = uint64(c.start), uint64(c.count)|uint64(c.strikes)<<32, uint64(c.until)
}

// locked reports whether a wait is under way: none is if a window has begun since.
func (c lockoutCell) locked(now int64) bool { return max(now, c.start) < c.until }

// left returns the strikes that have not decayed at now.
func (c lockoutCell) left(m *meter, now int64) uint32 {
	if now <= c.until {
		return c.strikes
	}
	return c.strikes - uint32(min(int64(c.strikes), (now-c.until)/m.lockout.decay))
}

// last returns the length of the last wait.
func (c lockoutCell) last(m *meter) int64 { return m.lockout.wait(max(c.strikes, 1) - 1) }

// far reports whether the window, or the last wait, began a window or more
// ahead of now.
func (c lockoutCell) far(m *meter, now int64) bool {
	return c.start-now >= m.window || c.until-now >= c.last(m)+m.window
}

func (c lockoutCell) roll(m *meter, now int64) lockoutCell {
	if c.far(m, now) { // only a step of the clock explains it
		c.start = min(c.start, now)
		c.until = min(c.until, now+c.last(m))
	}
	if c.locked(now) {
		return c
	}
	now = max(now, c.start)
	if c.start < c.until || now >= c.start+m.window {
		c.start, c.count = 0, 0
	}
	if c.left(m, now) == 0 {
		c.strikes, c.until = 0, 0
	}
	return c
}

func (c lockoutCell) used(m *meter, now int64) int64 {
	if c.locked(now) {
		return m.quota
	}
	return int64(c.count)
}

// charge counts hits; those that use the quota up begin a wait.
func (c lockoutCell) charge(m *meter, now, cost int64) lockoutCell {
	now = max(now, c.start)
	if c.start == 0 && c.count == 0 {
		c.start = now
	}
	c.count += uint32(cost)
	if int64(c.count) >= m.quota {
		before := c.left(m, now)
		c.until = now + m.lockout.wait(before)
		c.strikes = min(before+1, m.lockout.levels)
	}
	return c
}

// refund takes hits back out of the window that is open or has been filled.
// Where that makes room again, the wait ends and its strike is taken back; the
// others decay from the window's start, since the end of the wait before is
// not known any more.
func (c lockoutCell) refund(m *meter, now, at, cost int64) lockoutCell {
	if at < c.start || at >= c.start+m.window || c.count == 0 {
		return c
	}
	c.count -= uint32(min(cost, int64(c.count)))
	if c.locked(now) && int64(c.count) < m.quota {
		c.strikes -= min(1, c.strikes)
		c.until = 0
		if c.strikes > 0 {
			c.until = c.start
		}
	}
	return c
}

func (c lockoutCell) wait(m *meter, now, cost int64) int64 {
	switch {
	case c.locked(now):
		return c.until - now
	case int64(c.count)+cost <= m.quota:
		return 0
	}
	return c.start + m.window - now
}

func (c lockoutCell) expiry(m *meter) int64 {
	end := int64(math.MinInt64)
	if c.start != 0 || c.count != 0 {
		end = c.start + m.window
	}
	if c.strikes > 0 {
		end = max(end, c.until+int64(c.strikes)*m.lockout.decay)
	}
	return max(end, c.until)
}

// lockoutsWithin returns the most times that the quota can be used up in a
// window of the limit's length, wherever it begins.
func (m *meter) lockoutsWithin() int64 {
	k, n, passed := m.lockout, int64(1), int64(0)
	for strikes := range k.levels {
		if passed += k.wait(strikes); passed >= m.window {
			return n
		}
		n++
	}
	return n + (m.window-1-passed)/k.longest
}
