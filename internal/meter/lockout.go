package meter

import "math"

// A lockout is a fixed window that answers each use of its whole quota with a wait, and every
// further one with a longer wait:
//
//	wait after n others = min(first × factorⁿ, longest)
//
// During a wait everything is denied, and nothing makes the wait longer. Each time of decay after a
// wait, one wait is forgotten. Such a lockout for failed logins is what
// https://cheatsheetseries.owasp.org/cheatsheets/Authentication_Cheat_Sheet.html describes as
// "exponential lockout".
//
// lockoutCell is the state. The window is open from start, if it has hits. A wait that ended after
// start has closed it.
type lockoutCell struct {
	start   int64 // of the window
	count   uint32
	strikes uint32 // waits not forgotten when the last one began, that one included
	until   int64  // the end of the last wait, from which strikes decay
}

const lockoutWords = 3

type lockout struct{ fixedSize }

// Waits is what a lockout adds to a fixed window. Times are microseconds.
type Waits struct {
	First, Longest int64
	Factor         int64
	Decay          int64
}

// maxStrikes is above the strikes that any lockout counts: a wait of a millisecond that doubles is
// as long as 366 days after 35.
const maxStrikes = 64

// levels returns the strikes from which the wait is the longest.
func (k *Waits) levels() uint32 {
	n := uint32(1)
	for k.Factor > 1 && k.length(n-1) < k.Longest {
		n++
	}
	return n
}

// length returns the length of the wait after this many others.
func (k *Waits) length(strikes uint32) int64 {
	d := k.First
	for range strikes { // at most maxStrikes
		d = min(d*k.Factor, k.Longest)
	}
	return d
}

func loadLockout(w []uint64) lockoutCell {
	c := loadCell(w)
	return lockoutCell{c.t, c.a, c.b, int64(w[2])}
}

func (c lockoutCell) store(w []uint64) {
	cell{c.start, c.count, c.strikes}.store(w)
	w[2] = uint64(c.until)
}

func (a *lockout) read(m *Meter, r *Reader) []uint64 {
	w := a.fixedSize.read(m, r)
	r.Bad = r.Bad || loadLockout(w).strikes > maxStrikes
	return w
}

// advance returns far if the window, or the last wait, began a window or more ahead of now.
func (*lockout) advance(m *Meter, w []uint64, now int64) (at int64, far bool) {
	c := loadLockout(w)
	if far = c.start-now >= m.Window || c.until-now >= c.last(m)+m.Window; far { // only a step of the clock explains it
		c.start = min(c.start, now)
		c.until = min(c.until, now+c.last(m))
	}
	if at = max(now, c.start); !c.locked(now) {
		if c.start < c.until || at >= c.start+m.Window {
			c.start, c.count = 0, 0
		}
		if c.unforgotten(m, at) == 0 {
			c.strikes, c.until = 0, 0
		}
		at = max(now, c.start)
	}
	c.store(w)
	return at, far
}

// last returns the length of the last wait.
func (c lockoutCell) last(m *Meter) int64 { return m.Waits.length(max(c.strikes, 1) - 1) }

// locked reports whether a wait is under way: not if a window has begun since.
func (c lockoutCell) locked(now int64) bool { return max(now, c.start) < c.until }

// unforgotten returns the strikes that are not forgotten at now.
func (c lockoutCell) unforgotten(m *Meter, now int64) uint32 {
	if now <= c.until {
		return c.strikes
	}
	return c.strikes - uint32(min(int64(c.strikes), (now-c.until)/m.Waits.Decay))
}

func (*lockout) left(m *Meter, w []uint64, now int64) int64 {
	c := loadLockout(w)
	if c.locked(now) {
		return 0
	}
	return max(0, m.Quota-int64(c.count))
}

// wait is the same for every cost: all hits come back at once.
func (*lockout) wait(m *Meter, w []uint64, now, _ int64) int64 {
	c := loadLockout(w)
	if c.locked(now) {
		return c.until - now
	}
	return c.start + m.Window - now
}

// charge counts hits. Those that use the quota up begin a wait. During a wait none are counted.
func (*lockout) charge(m *Meter, w []uint64, now, cost int64) {
	c := loadLockout(w)
	if c.locked(now) {
		return
	}
	now = max(now, c.start)
	if c.start == 0 && c.count == 0 {
		c.start = now
	}
	c.count = addCount(c.count, cost)
	if int64(c.count) >= m.Quota {
		before := c.unforgotten(m, now)
		c.until = now + m.Waits.length(before)
		c.strikes = min(before+1, m.Waits.levels())
	}
	c.store(w)
}

// refund takes hits of the time at out of the window that is open or has been filled. If that makes
// room again, the wait ends and its strike is taken back. The other strikes then decay from the
// window's start, because the end of the wait before is not known any more.
func (*lockout) refund(m *Meter, w []uint64, now, at, _, cost int64) {
	c := loadLockout(w)
	if at < c.start || at >= c.start+m.Window || c.count == 0 {
		return
	}
	c.count -= uint32(min(cost, int64(c.count)))
	if c.locked(now) && int64(c.count) < m.Quota {
		c.strikes -= min(1, c.strikes)
		c.until = 0
		if c.strikes > 0 {
			c.until = c.start
		}
	}
	c.store(w)
}

// grant leaves lockouts alone.
func (*lockout) grant(*Meter, []uint64, int64, int64) {}

func (*lockout) expiry(m *Meter, w []uint64) int64 {
	c := loadLockout(w)
	end := c.until + int64(c.strikes)*m.Waits.Decay
	if c.start != 0 || c.count != 0 {
		end = max(end, c.start+m.Window)
	}
	return end
}

// worstCase is one quota more than are used up in a window that begins with a wait.
func (*lockout) worstCase(m *Meter) int64 {
	n, passed := int64(2), int64(0)
	for strikes := range m.Waits.levels() {
		if passed += m.Waits.length(strikes); passed >= m.Window {
			return n * m.Quota
		}
		n++
	}
	n += (m.Window - 1 - passed) / m.Waits.Longest
	return min(n, math.MaxInt64/max(m.Quota, 1)) * m.Quota
}

func (*lockout) lifetime(m *Meter) int64 {
	return max(m.Window, m.Waits.Longest+int64(m.Waits.levels())*m.Waits.Decay)
}
