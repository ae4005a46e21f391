package storetest

import (
	"math/big"

	"github.com/floodgate-go/floodgate/core"
)

// modelDebt is what a token bucket owes: so many hits at a time, which pays hits in
// each window pay off.
type modelDebt struct {
	hits *big.Rat // nil: none
	at   int64
	pays int64
}

func hits(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func plus(a *big.Rat, n int64) *big.Rat { return new(big.Rat).Add(a, hits(n)) }

// owes returns the hits that are owed at t.
func (l *modelLimit) owes(t int64) *big.Rat {
	d := l.debt
	if d.hits == nil {
		return new(big.Rat)
	}
	paid := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(t-d.at), big.NewInt(d.pays)), big.NewInt(l.window()))
	return atLeastNone(paid.Sub(d.hits, paid))
}

func atLeastNone(hits *big.Rat) *big.Rat {
	if hits.Sign() < 0 {
		return new(big.Rat)
	}
	return hits
}

// owe adds hits to the debt, which is at most twice the burst. A quota of 0 pays
// nothing off: nothing is added.
func (l *modelLimit) owe(t, cost int64) {
	if l.Quota == 0 {
		return
	}
	owed, most := plus(l.owes(t), cost), hits(2*l.capacity())
	if owed.Cmp(most) > 0 {
		owed = most
	}
	l.debt = modelDebt{owed, t, l.Quota}
}

// payBack takes hits off the debt, as many as are paid off in the time that is left
// until the charge would have been paid off.
func (l *modelLimit) payBack(t, left, cost int64) {
	if l.Quota == 0 || l.debt.hits == nil {
		return
	}
	back := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(left), big.NewInt(l.debt.pays)), big.NewInt(l.window()))
	if all := hits(cost); all.Cmp(back) < 0 {
		back = all
	}
	owed := l.owes(t)
	l.debt = modelDebt{atLeastNone(owed.Sub(owed, back)), t, l.debt.pays}
}

// under returns the limit as it is for a request with a quota, and a function that
// must be called when that has changed. With core.Unlimited it is the limit's own.
func (l *modelLimit) under(quota int64) (m *modelLimit, done func()) {
	own := l.Limit
	if quota != core.Unlimited && quota != own.Quota {
		l.Quota = quota
		if own.Burst > 0 {
			l.Burst = 0
			if own.Quota > 0 && quota > 0 {
				l.Burst = max(1, own.Burst*quota/own.Quota)
			}
		}
	}
	return l, func() { l.Limit = own }
}
