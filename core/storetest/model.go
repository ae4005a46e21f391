package storetest

import (
	"math/big"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// modelLimit is one limit of one key as the contract describes it: it keeps every hit and computes
// everything anew each time, in exact numbers. It is slow and plain.
type modelLimit struct {
	core.Limit
	charges []modelCharge
	debt    modelDebt
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

// windows replays the charges. Each window begins at its anchor; a charge begins a new one if none
// has begun for this many lengths.
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
		return plus(l.owes(t), cost).Cmp(hits(l.capacity())) <= 0
	default:
		return l.used(t)+cost <= l.Quota
	}
}

func (l *modelLimit) charge(t, cost int64) {
	switch {
	case cost == 0 || l.locked(t):
		return
	case l.Algorithm == core.TokenBucket:
		l.owe(t, cost)
		return
	case l.Algorithm == core.SlidingLog:
		cost = l.makeRoom(t, cost)
	}
	l.charges = append(l.charges, modelCharge{t, cost})
	if l.Lockout != (core.Lockout{}) && l.used(t) >= l.Quota {
		l.beginWait(t)
	}
}

// makeRoom drops the oldest hits of a log, so that it keeps as many as its quota, or as it has. It
// returns how many of the new hits have room.
func (l *modelLimit) makeRoom(t, cost int64) int64 {
	used := l.used(t)
	most := max(l.Quota, used)
	cost = min(cost, most)
	drop := used + cost - most
	for i := range l.charges {
		if c := &l.charges[i]; drop > 0 && t-c.at < l.window() {
			n := min(drop, c.cost)
			c.cost -= n
			drop -= n
		}
	}
	return cost
}

// refund takes back a charge of cost hits made at the time at.
func (l *modelLimit) refund(t, at int64, reset time.Duration, cost int64) {
	if cost == 0 {
		return
	}
	if l.Algorithm == core.TokenBucket {
		l.payBack(t, max(0, at+reset.Microseconds()-t), cost)
		return
	}
	for i := range l.charges {
		if c := &l.charges[i]; c.at == at {
			back := min(cost, c.cost)
			c.cost -= back
			cost -= back
		}
	}
	if _, _, from := l.windows(t, 1); at >= from { // it was in the window that has been filled
		l.endWait(t)
	}
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
	for l.Algorithm == core.TokenBucket && !l.admits(t+high, cost) {
		high *= 2
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
