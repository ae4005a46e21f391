package resilient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
)

var _ core.Granter = (*bound)(nil)

// Grant implements [core.Granter], if the other store does. If the store grants the hits,
// the counters of this process do, too. In an outage it is an error and grants
// nothing anywhere. Hits of an outage that this process has not charged to the store yet
// are charged before: the grant gives back some of them, too.
func (b *bound) Grant(ctx context.Context, batch *core.Batch) error {
	if _, ok := b.inner.(core.Granter); !ok {
		return fmt.Errorf("resilient: granting hits: %T: %w", b.store, core.ErrUnsupported)
	}
	ctx = context.WithoutCancel(ctx)
	t, err := b.circuits.allow(b.where, batch)
	if err != nil {
		return notcharged.Error(err) // the store was not asked
	}
	if b.config.Meanwhile == ModeInProcess {
		began := time.Now()
		if err := b.settle(ctx, batch); err != nil {
			b.done(ctx, &t, err, began)
			return notcharged.Error(err)
		}
	}
	if b.config.Meanwhile == ModeInProcess {
		defer b.giving(ctx, batch.Items)()
	}
	err = b.do(ctx, batch, func(inner core.Bound, ctx context.Context, batch *core.Batch) error {
		return inner.(core.Granter).Grant(ctx, batch)
	}, &t)
	if err != nil || b.config.Meanwhile != ModeInProcess {
		return err
	}
	own := b.newMirror(batch)
	defer own.free()
	for i := range own.items {
		own.batch.Items = own.items[i : i+1]
		err = errors.Join(err, b.owed.grant(ctx, &own.batch))
	}
	own.batch.Items = own.items
	return err
}

// grant grants the hits of the one item of a batch in this process.
func (o *owed) grant(ctx context.Context, one *core.Batch) error {
	it := &one.Items[0]
	if !o.none() {
		s, _ := o.asking.shard(o.ids[it.Rule], it.Key)
		s.mu.Lock()
		defer s.mu.Unlock()
		o.mu.Lock()
		o.knowsLess(o.key(it), hits(it))
		o.mu.Unlock()
	}
	return o.local.(core.Granter).Grant(ctx, one)
}
