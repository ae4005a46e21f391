package storetest

import (
	"math/big"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// modelLimit is one limit of one key as the contract describes it: it keeps
// every hit and computes everything anew each time, in exact numbers. It is
// slow and plain.
type modelLimit struct {
	core.Limit
	charges []modelCharge
	full    *big.Rat // token bucket: when it is full again; nil: always was
	waits   []modelWait
}

type modelCharge struct {
	at   int64 // microseconds
	cost int64
}

func (l *modelLimit) window() int64 { return l.Window.Microseconds() }

func (l *modelLimit) capacity() int64 {
	if l.Algorithm == core.TokenBucket && l.Burst > 0 {
		return l.Burst
	}
	return l.Quota
}

func (l *modelLimit) anchor(t int64) int64 {
	if l.Aligned {
		return t - t%l.window()
	}
	return t
}

// perHit is the time between hits at an even rate.
func (l *modelLimit) perHit() *big.Rat { return big.NewRat(l.window(), l.Quota) }

// times returns n × perHit.
func (l *modelLimit) times(n int64) *big.Rat {
	return new(big.Rat).Mul(l.perHit(), new(big.Rat).SetInt64(n))
}

func later(a, b *big.Rat) *big.Rat {
	if a == nil || a.Cmp(b) < 0 {
		return b
	}
	return a
}

// used returns the hits that count at t.
func (l *modelLimit) used(t int64) int64 {
	var n int64
	switch l.Algorithm {
	case core.SlidingLog:
		for _, c := range l.charges {
			if t-c.at < l.window() {
				n += c.cost
			}
		}
	case core.BucketedWindow:
		p := l.Precision.Microseconds()
		for _, c := range l.charges {
			if c.at/p >= t/p-l.window()/p {
				n += c.cost
			}
		}
	case core.FixedWindow:
		n, _, _ = l.windows(t, 1)
		if l.locked(t) {
			n = l.Quota
		}
	default:
		cur, prev, from := l.windows(t, 2)
		weighted := big.NewInt(prev)
		weighted.Mul(weighted, big.NewInt(l.window()-(t-from)))
		weighted.Div(weighted, big.NewInt(l.window()))
		n = cur + weighted.Int64()
	}
	return n
}

// windows replays the charges. Each window begins at its anchor; a charge
// begins a new one if none has begun for this many lengths.
func (l *modelLimit) windows(t int64, lengths int64) (cur, prev, from int64) {
	begun := false
	move := func(t int64) {
		switch {
		case !begun || t >= from+lengths*l.window() || l.waitEnded(from, t):
			begun, cur, prev, from = true, 0, 0, l.anchor(t)
		case t >= from+l.window():
			cur, prev, from = 0, cur, from+l.window()
		}
	}
	for _, c := range l.charges {
		move(c.at)
		cur += c.cost
	}
	if !l.locked(t) {
		move(t)
	}
	return cur, prev, from
}

func (l *modelLimit) admits(t, cost int64) bool {
	switch {
	case cost == 0:
		return true
	case l.Quota == 0 || cost > l.capacity():
		return false
	case l.locked(t):
		return false
	case l.Algorithm == core.TokenBucket:
		now := new(big.Rat).SetInt64(t)
		full := new(big.Rat).Add(later(l.full, now), l.times(cost))
		return full.Sub(full, l.times(l.capacity())).Cmp(now) <= 0
	default:
		return l.used(t)+cost <= l.Quota
	}
}

func (l *modelLimit) charge(t, cost int64) {
	if l.Algorithm == core.TokenBucket {
		l.full = new(big.Rat).Add(later(l.full, new(big.Rat).SetInt64(t)), l.times(cost))
		return
	}
	l.charges = append(l.charges, modelCharge{t, cost})
	if l.Lockout != (core.Lockout{}) && l.used(t) >= l.Quota {
		l.beginWait(t)
	}
}

// refund takes back a charge of cost hits made at the time at.
func (l *modelLimit) refund(t, at int64, reset time.Duration, cost int64) {
	if l.Algorithm == core.TokenBucket {
		owed := new(big.Rat).SetInt64(max(0, at+reset.Microseconds()-t))
		if l.full == nil || owed.Sign() == 0 {
			return
		}
		if all := l.times(cost); all.Cmp(owed) < 0 {
			owed = all
		}
		l.full = new(big.Rat).Sub(l.full, owed)
		return
	}
	for i := range l.charges {
		if c := &l.charges[i]; c.at == at {
			back := min(cost, c.cost)
			c.cost -= back
			cost -= back
		}
	}
	l.endWait(t)
}

// remaining returns the largest cost that is admitted.
func (l *modelLimit) remaining(t int64) int64 {
	low, high := int64(0), l.capacity()
	for low < high {
		if mid := (low + high + 1) / 2; l.admits(t, mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// wait returns the shortest time after which cost is admitted.
func (l *modelLimit) wait(t, cost int64) time.Duration {
	switch {
	case cost == 0:
		return 0
	case l.Quota == 0 || cost > l.capacity():
		return core.Never
	}
	low, high := int64(0), 4*l.window()
	if l.Algorithm == core.TokenBucket {
		high = l.window()/l.Quota*(l.capacity()+1) + l.capacity() + l.window()
	}
	for low < high {
		if mid := (low + high) / 2; l.admits(t+mid, cost) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return time.Duration(low) * time.Microsecond
}

// more returns the shortest time after which more remains.
func (l *modelLimit) more(t int64) time.Duration {
	left := l.remaining(t)
	if l.Quota == 0 || left == l.capacity() {
		return 0
	}
	return l.wait(t, left+1)
}

func (l *modelLimit) reset(t int64) time.Duration {
	if l.Quota == 0 {
		return 0
	}
	return l.wait(t, l.capacity())
}
