package resilient

import (
	"context"
	"errors"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Refund implements [core.Bound].
func (b *bound) Refund(ctx context.Context, batch *core.Batch) error {
	if b.config.Meanwhile != ModeInProcess {
		if batch.Degraded {
			return nil // it was never charged
		}
		return b.ask(ctx, batch, core.Bound.Refund)
	}
	own := b.newMirror(batch)
	defer own.free()
	if batch.Degraded {
		return b.refundOwn(ctx, own)
	}
	defer b.giving(ctx, batch.Items)()
	err := b.ask(ctx, batch, core.Bound.Refund)
	now, offset := b.now(), b.offset.Load()
	for i := range own.items {
		it := &own.items[i]
		it.At = min(now, it.At+offset+clockSlack.Microseconds())
	}
	return errors.Join(err, b.refundOwn(ctx, own))
}

// giving keeps the debts of the keys from being charged until the returned function
// is called, and waits for charges that are under way. The store and this process do
// not give hits back at the same instant: a charge that is made between them would
// take the hits for ones that the store has lost.
func (b *bound) giving(ctx context.Context, items []core.Item) (given func()) {
	await(context.WithoutCancel(ctx), b.owed.give(items, 1))
	return func() { b.owed.give(items, -1) }
}

// give adds n to the number of refunds and grants of each item's key. It returns
// the ends of the payments of these keys that are under way.
func (o *owed) give(items []core.Item, n int) (ends []<-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range items {
		k := o.key(&items[i])
		if o.giving[k] += n; o.giving[k] == 0 {
			delete(o.giving, k)
		}
		if p := o.paying[k]; p != nil {
			ends = append(ends, p.done)
		}
	}
	return ends
}

// clockSlack is added to the estimate of when this process charged a hit of the
// store's. An estimate that is too early might lie before the window that the
// hit has opened. One that is too late only leaves the hit counted here.
const clockSlack = 200 * time.Millisecond

// refundOwn refunds in this process. It changes what the keys owe together with
// their counters, so that a payment sees both changes or none.
func (b *bound) refundOwn(ctx context.Context, own *mirror) error {
	if b.owed.none() {
		return b.local.Refund(ctx, &own.batch)
	}
	var errs []error
	for i := range own.items {
		own.batch.Items = own.items[i : i+1]
		errs = append(errs, b.owed.refund(ctx, &own.batch))
	}
	own.batch.Items = own.items
	return errors.Join(errs...)
}

// refund refunds the one item of a batch in this process.
func (o *owed) refund(ctx context.Context, one *core.Batch) error {
	it := &one.Items[0]
	s, _ := o.asking.shard(o.ids[it.Rule], it.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	o.mu.Lock()
	if k := o.key(it); one.Degraded {
		o.owesLess(k, hits(it))
	} else {
		o.knowsLess(k, hits(it))
	}
	o.mu.Unlock()
	return o.local.Refund(ctx, one)
}

// owesLess takes hits off a key's debt: first those that the store may have
// charged, as the others are certain to be missing there. The ledger is locked.
func (l *ledger) owesLess(k owedKey, hits int64) {
	p := l.paying[k]
	if d, found := l.debts[k]; found {
		before := d.hits()
		d.giveBack(hits)
		l.debts[k] = d
		back := before - d.hits()
		hits -= back
		if p != nil {
			p.later = max(0, p.later-back)
		}
	}
	if p != nil {
		p.back += hits
	}
}

// giveBack takes hits off a debt, as many as it has.
func (d *debt) giveBack(hits int64) {
	unsure := min(hits, d.unsure)
	d.unsure -= unsure
	d.sure -= min(hits-unsure, d.sure)
}

// knowsLess notes that hits of a key that the process and the store have both
// charged were refunded in both. The ledger is locked.
func (l *ledger) knowsLess(k owedKey, hits int64) {
	if p := l.paying[k]; p != nil {
		p.known = max(0, p.known-hits)
	} else if d, found := l.debts[k]; found {
		d.known = max(0, d.known-hits)
		l.debts[k] = d
	}
}
