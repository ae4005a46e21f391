package resilient

import (
	"context"
	"fmt"
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// settle charges to the store what the batch's keys owe: hits that were admitted
// in this process while the store did not answer. After that the store knows of
// them and decides alone, so that a Reset in the store ends them too. own is what
// this process has decided on the batch.
func (b *bound) settle(ctx context.Context, batch *core.Batch, own *mirror) error {
	if b.owed.none() {
		return nil
	}
	for i := range batch.Items {
		if err := b.settleItem(ctx, &batch.Items[i], &own.items[i], own.charged()); err != nil {
			return err
		}
	}
	return nil
}

func (b *bound) settleItem(ctx context.Context, it, own *core.Item, charged bool) (err error) {
	d, ok := b.owed.claim(it)
	if !ok {
		return nil
	}
	done := false
	defer func() { b.owed.paid(it, d, !done || err != nil) }() // also if the store panics
	err = b.pay(ctx, it, own, d, charged)
	done = true
	return err
}

// pay charges each limit of an item's key with the hits that it owes, or with as
// many as fit: the key has used up its quota then.
//
// A limit owes the hits for which the store was not asked, but no more than this
// process still counts in it, so that what has left a short window is not charged
// to it again. And it owes what the store's count is below that of this process:
// hits whose charge failed, and hits that the store has lost.
func (b *bound) pay(ctx context.Context, it, own *core.Item, d debt, charged bool) error {
	m := newMirror(&core.Batch{Items: []core.Item{*it}, Peek: true})
	defer m.free()
	m.items[0].Cost = 0 // asks for the counts alone, of which no denial is remembered
	if err := b.call(ctx, b.inner, &m.batch, core.Bound.Take); err != nil {
		return err
	}
	limits := b.rules[it.Rule].Limits
	owes, most, least := make([]int64, len(limits)), int64(0), int64(core.MaxQuota)
	for j := range limits {
		used := size(b.shares[it.Rule].Limits[j]) - own.Results[j].Remaining
		if charged {
			used -= it.Cost
		}
		room := m.items[0].Results[j].Remaining
		stored := size(limits[j]) - room
		owes[j] = min(room, max(min(d.sure, used), used-stored))
		most, least = max(most, owes[j]), min(least, room)
	}
	if len(limits) == 1 {
		return b.charge(ctx, b.inner, it, owes, most)
	}
	for j := range limits {
		payer, err := b.payers.of(b, j)
		switch {
		case err != nil:
			return fmt.Errorf("resilient: %w", err)
		case payer == nil:
			return b.charge(ctx, b.inner, it, owes, min(most, least))
		}
		if err := b.charge(ctx, payer, it, owes[j:j+1], owes[j]); err != nil {
			return err
		}
	}
	return nil
}

// size is how many hits a limit admits at once.
func size(l core.Limit) int64 {
	if l.Algorithm == core.TokenBucket && l.Burst > 0 {
		return l.Burst
	}
	return l.Quota
}

// payTries is how often a charge is tried that does not fit, because others take
// hits of the same key at the same moment.
const payTries = 3

// charge charges hits to an item's key, or as many as fit into the limits of the
// payer, of which there is one for each of owes.
func (b *bound) charge(ctx context.Context, payer core.Bound, it *core.Item, owes []int64, hits int64) error {
	batch := core.Batch{Items: []core.Item{{Rule: it.Rule, Key: it.Key, Results: make([]core.Result, len(owes))}}}
	one := &batch.Items[0]
	for range payTries {
		if hits <= 0 {
			return nil
		}
		one.Cost, one.Unknown = hits, false
		if err := b.call(ctx, payer, &batch, core.Bound.Take); err != nil || batch.Allowed {
			return err
		}
		for _, r := range one.Results {
			hits = min(hits, r.Remaining)
		}
	}
	return nil
}

// Divisible is a core.Bound whose limits can be charged one by one, such as that
// of redisstore, memcachedstore and core.SwapStore. After an outage each limit of
// a rule is then charged with the hits that still count in it. Without it, all
// limits of a rule are charged with the same number of hits: as many as fit into
// the limit that has the least left.
type Divisible interface {
	// Beside returns a Bound for some limits of the rules that the Bound is
	// for. Both count in the same counters and may be used concurrently. nil
	// without an error means that the store cannot do that.
	Beside(rules []core.StoreRule) (core.Bound, error)
}

// payers are the store bound to one limit of each rule. They are made when the
// first is needed.
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
