package meter

import (
	"math/big"
	"slices"
)

// plain counts the hits of one key as the comments of the algorithms define it:
// it keeps every hit, and computes with fractions. Its clock does not go back.
type plain struct {
	Limit
	hits    []plainHit
	start   int64 // of the window that is open, if open
	open    bool
	debt    *big.Rat // of a token bucket, in hits, at the time paid
	paid    int64
	strikes int64 // of a lockout
	until   int64
}

type plainHit struct{ at, n int64 }

func newPlain(l Limit) *plain { return &plain{Limit: l, debt: new(big.Rat)} }

func (p *plain) anchor(now int64) int64 {
	if p.Aligned {
		return now - now%p.Window
	}
	return now
}

// between returns the hits of the times from from to before to.
func (p *plain) between(from, to int64) (n int64) {
	for _, h := range p.hits {
		if h.at >= from && h.at < to {
			n += h.n
		}
	}
	return n
}

// current returns the start of the window that is open at now.
func (p *plain) current(now int64) (start int64, open bool) {
	switch {
	case !p.open:
		return 0, false
	case p.Algorithm == SlidingWindow && now >= p.start+p.Window && now < p.start+2*p.Window:
		return p.start + p.Window, true
	case now >= p.start+p.Window, p.Algorithm == Lockout && p.until > p.start && now >= p.until:
		return 0, false
	}
	return p.start, true
}

// owed returns a token bucket's debt in hits.
func (p *plain) owed(now int64) *big.Rat {
	off := new(big.Rat).SetFrac(big.NewInt((now-p.paid)*p.Quota), big.NewInt(p.Window))
	if off.Sub(p.debt, off); off.Sign() < 0 {
		off.SetInt64(0)
	}
	return off
}

func (p *plain) remaining(now int64) int64 {
	start, open := p.current(now)
	used := int64(0)
	switch p.Algorithm {
	case TokenBucket:
		left := new(big.Rat).Sub(new(big.Rat).SetInt64(p.Capacity), p.owed(now))
		if left.Sign() < 0 {
			return 0
		}
		return new(big.Int).Quo(left.Num(), left.Denom()).Int64()
	case BucketedWindow:
		k := now / p.Precision
		used = p.between((k-p.Window/p.Precision)*p.Precision, now+1)
	case SlidingLog:
		used = p.between(now-p.Window+1, now+1)
	case Lockout:
		if now < p.until {
			return 0
		}
		if open {
			used = p.between(start, start+p.Window)
		}
	case Calendar:
		used = p.between(plainWindow(p.Window, p.Zone, now))
	case FixedWindow:
		if open {
			used = p.between(start, start+p.Window)
		}
	default:
		if open {
			before := new(big.Int).Mul(big.NewInt(p.between(start-p.Window, start)), big.NewInt(start+p.Window-now))
			used = p.between(start, start+p.Window) + before.Quo(before, big.NewInt(p.Window)).Int64()
		}
	}
	return max(0, p.Quota-used)
}

// left returns the strikes of a lockout that are not forgotten.
func (p *plain) left(now int64) int64 {
	if now <= p.until || p.Algorithm != Lockout {
		return p.strikes
	}
	return max(0, p.strikes-(now-p.until)/p.Waits.Decay)
}

func (p *plain) charge(now, n int64) {
	start, open := p.current(now)
	if !open {
		start = p.anchor(now)
	}
	if p.Algorithm == Lockout && !open { // what was counted before a wait counts no more
		p.hits = nil
	}
	p.start, p.open = start, true
	if i := slices.IndexFunc(p.hits, func(h plainHit) bool { return h.at == now }); i >= 0 {
		p.hits[i].n += n
	} else {
		p.hits = append(p.hits, plainHit{now, n})
	}
	p.debt.Add(p.owed(now), new(big.Rat).SetInt64(n))
	p.paid = now
	if p.Algorithm == Lockout && p.between(start, start+p.Window) >= p.Quota {
		before := p.left(now)
		wait := p.Waits.First
		for range before {
			wait = min(wait*p.Waits.Factor, p.Waits.Longest)
		}
		// Strikes beyond the longest wait are not counted.
		most := int64(1)
		for d := p.Waits.First; d < p.Waits.Longest && p.Waits.Factor > 1; d *= p.Waits.Factor {
			most++
		}
		p.until, p.strikes = now+min(wait, p.Waits.Longest), min(before+1, most)
	}
}

// refund takes hits of a charge back, of a token bucket those that are owed still.
func (p *plain) refund(now, at, full, n int64) {
	if p.Algorithm == TokenBucket {
		back := new(big.Rat).SetFrac(big.NewInt(max(0, full-now)*p.Quota), big.NewInt(p.Window))
		if all := new(big.Rat).SetInt64(n); back.Cmp(all) > 0 {
			back = all
		}
		p.debt.Sub(p.owed(now), back)
		if p.paid = now; p.debt.Sign() < 0 {
			p.debt.SetInt64(0)
		}
		return
	}
	start, open := p.current(now)
	locked := p.Algorithm == Lockout && now < p.until
	if locked {
		start, open = p.start, true
	}
	i := slices.IndexFunc(p.hits, func(h plainHit) bool { return h.at == at })
	if i < 0 || p.Algorithm == Lockout && (!open || at < start) {
		return
	}
	p.hits[i].n -= min(n, p.hits[i].n)
	if locked && p.between(start, start+p.Window) < p.Quota {
		if p.strikes--; p.strikes > 0 {
			p.until = start
		} else {
			p.until = 0
		}
	}
}

// blank reports whether a key is as if it had never been used.
func (p *plain) blank(now int64) bool {
	return p.remaining(now) == p.Capacity && p.left(now) == 0 && (p.Algorithm != TokenBucket || p.owed(now).Sign() == 0)
}
