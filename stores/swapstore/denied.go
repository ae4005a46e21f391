package swapstore

import (
	"context"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
)

// chargeDenied charges the costs of items that have been judged to the limits that
// deny them and count denied hits. The error wraps core.ErrNotCharged only if nothing has
// been charged.
func (b *bound) chargeDenied(ctx context.Context, items []item, now int64) error {
	some := false
	for i := range items {
		if items[i].denying == 0 {
			continue
		}
		err := b.chargeDeniedItem(ctx, items[i:i+1], now)
		if err != nil && some {
			return notcharged.Unmark(err)
		}
		if err != nil {
			return err
		}
		some = true
	}
	return nil
}

// chargeDeniedItem charges one item. If another writer has changed the value since the
// limits denied the cost, they still did: they are charged whatever they admit now.
func (b *bound) chargeDeniedItem(ctx context.Context, one []item, now int64) error {
	it := &one[0]
	denying := it.denying
	for attempt := range b.attempts {
		if attempt > 0 {
			if err := b.pause(ctx, attempt); err != nil {
				return notcharged.Error(err)
			}
			if err := b.load(ctx, one); err != nil {
				return notcharged.Error(err)
			}
			now = b.now()
			it.judge(now)
			if it.is == newer {
				return nil
			}
		}
		it.chargeLimits(denying, now)
		if stored, err := b.store(ctx, it, now); err != nil || stored {
			it.denying = denying
			return err
		}
	}
	return notcharged.Error(fmt.Errorf("limiter %q: %d attempts: %w", b.limiter, b.attempts, core.ErrContended))
}

// chargeLimits charges the cost to some of the limits, which are denied.
func (it *item) chargeLimits(some uint, now int64) {
	for i := range it.rule.meters {
		if some&(1<<i) == 0 {
			continue
		}
		m, _ := it.meter(i)
		w := it.grow(i, m, it.Cost)
		m.Charge(w, now, it.Cost)
		m.Report((*meter.Result)(&it.Results[i]), w, now, it.Cost, false)
	}
	if it.usedUp > now {
		it.use(it.usedUp - now)
	}
}
