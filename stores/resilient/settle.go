package resilient

import (
	"context"
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// settle charges to the store the hits that the batch's keys owe: those
// admitted in this process while the store did not answer. Then the store knows
// of them and decides alone, so that a Reset in the store ends them too. After that, it
// tells the store of blocks: of a blocked key, the store shows no hits that it has lost.
func (b *bound) settle(ctx context.Context, batch *core.Batch) error {
	if !b.owed.none() {
		for i := range batch.Items {
			if err := b.settleItem(ctx, &batch.Items[i]); err != nil {
				return err
			}
		}
	}
	return b.tellBlocks(ctx, batch)
}

func (b *bound) settleItem(ctx context.Context, it *core.Item) (err error) {
	c := b.owed.claim(it)
	if c == nil {
		return nil
	}
	done := false
	defer func() { b.paid(c, !done || err != nil, true) }() // also if the store panics
	if err = b.count(ctx, c); err == nil {
		err = b.pay(ctx, []*claim{c})
	}
	done = true
	return err
}

// paid ends a claim: see owed.paid.
func (b *bound) paid(c *claim, failed, due bool) {
	b.owed.paid(c, b.serverOf(c.index, c.name), failed, due)
	if failed && due {
		b.payer.wake()
	}
}

// serverOf returns which server has a key, "" if the store does not report it.
func (b *bound) serverOf(rule int, key []byte) string {
	if b.where == nil {
		return ""
	}
	return b.where.ServerOf(rule, key)
}

// Divisible is a core.Bound whose limits can be charged one by one, as those of
// redisstore, memcachedstore and swapstore are. After an outage each limit of a
// rule is then charged with the hits that still count in it, one by one unless all
// limits owe the same. A store that is
// not Divisible has all limits of a rule charged with the same number of hits:
// as many as fit into the limit that has the least left.
type Divisible interface {
	// Beside returns a Bound for some limits of the rules that the Bound is
	// for. Both count in the same counters and may be used concurrently. nil
	// without an error means that the store cannot do that.
	Beside(rules []core.StoreRule) (core.Bound, error)
}

// payers are the store bound to one limit of each rule. They are made when
// first needed.
type payers struct {
	mu    sync.Mutex
	bound map[int]core.Bound // by the limit's index
}

// of returns nil if the store's limits cannot be charged one by one.
func (p *payers) of(b *bound, limit int) (core.Bound, error) {
	d, ok := b.inner.(Divisible)
	if !ok {
		return nil, nil
	}
	p.mu.Lock()
	payer := p.bound[limit]
	p.mu.Unlock()
	if payer != nil {
		return payer, nil
	}
	rules := make([]core.StoreRule, len(b.rules))
	for i, r := range b.rules {
		j := min(limit, len(r.Limits)-1) // a rule without such a limit is not charged
		r.Limits = r.Limits[j : j+1 : j+1]
		rules[i] = r
	}
	payer, err := d.Beside(rules)
	if err != nil || payer == nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bound == nil {
		p.bound = map[int]core.Bound{}
	}
	p.bound[limit] = payer
	return payer, nil
}
