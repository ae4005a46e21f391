package storetest

import (
	"context"

	"github.com/floodgate-go/floodgate/core"
)

// grant gives back hits of some keys. Hits taken of them before must not be refunded after that.
func (p *play) grant() {
	if p.ops&core.OpGrant == 0 {
		return
	}
	b := &core.Batch{Items: p.drawItems()}
	if b.Items[0].Cost == 0 {
		return
	}
	if err := Do(context.Background(), p.bound, core.OpGrant, b); err != nil {
		p.r.Fatalf("Grant: %v", err)
	}
	if !b.Allowed {
		p.r.Fatalf("Grant has not set Allowed")
	}
	p.taken = nil
	for _, item := range b.Items {
		n := item.Cost
		item.Cost = 0
		for j := range p.state(item) {
			l, done := p.state(item)[j].under(p.quota(item, j))
			l.grant(p.now(), n)
			done()
			if want := p.result(item, j, false, true); item.Results[j] != want {
				p.r.Fatalf("rule %d, key %q, limit %v, %d granted, quotas %d: result %+v, model says %+v", item.Rule, item.Key, p.rules[item.Rule].Limits[j], n, item.Quotas, item.Results[j], want)
			}
		}
	}
}

// grant takes back up to n hits that count at t, the newest first.
func (l *modelLimit) grant(t, n int64) {
	if l.Lockout != (core.Lockout{}) {
		return
	}
	switch l.Algorithm {
	case core.TokenBucket:
		if l.Quota > 0 && l.debt.hits != nil {
			owed := l.owes(t)
			l.debt = modelDebt{atLeastNone(owed.Sub(owed, hits(n))), t, l.debt.pays}
		}
	case core.SlidingWindow:
		cur, _, from := l.windows(t, 2)
		newest := min(n, cur)
		l.takeBack(from, t+1, newest)
		for want := max(0, l.used(t)-(n-newest)); n > newest && l.used(t) > want; {
			l.takeBack(from-l.window(), from, 1)
		}
	case core.FixedWindow:
		cur, _, from := l.windows(t, 1)
		l.takeBack(from, t+1, min(n, cur))
	case core.BucketedWindow:
		p := l.Precision.Microseconds()
		l.takeBack((t/p-l.window()/p)*p, t+1, n)
	default:
		l.takeBack(t-l.window()+1, t+1, n)
	}
}

// takeBack takes up to n hits back that were charged in a time, the newest first.
func (l *modelLimit) takeBack(from, to, n int64) {
	for i := len(l.charges) - 1; i >= 0; i-- {
		if c := &l.charges[i]; c.at >= from && c.at < to {
			back := min(n, c.cost)
			c.cost -= back
			n -= back
		}
	}
}
