package redisstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

var (
	_ core.Blocker       = (*bound)(nil)
	_ core.Granter       = (*bound)(nil)
	_ core.ResetterOfAll = (*bound)(nil)
)

// Block implements [core.Blocker].
func (b *bound) Block(ctx context.Context, batch *core.Batch, d time.Duration) error {
	items := slices.Clone(batch.Items) // the script takes the time in place of the cost
	for i := range items {
		items[i].Cost, items[i].Quotas = d.Microseconds(), nil
	}
	return b.each(ctx, verbBlock, &core.Batch{Items: items})
}

// Grant implements [core.Granter].
func (b *bound) Grant(ctx context.Context, batch *core.Batch) error {
	return b.decide(ctx, verbGrant, batch)
}

// ResetAll implements [core.ResetterOfAll]. As [Store.Scan], it goes through all of the
// server's keys, in small steps, and needs the right to SCAN.
func (b *bound) ResetAll(ctx context.Context) error {
	nodes, err := b.store.nodes(ctx)
	if err != nil {
		return err
	}
	for i := range b.rules {
		for _, node := range nodes {
			if err := b.store.scan(ctx, node, b.limiter, &b.rules[i], b.store.forget); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget deletes the items.
func (s *Store) forget(ctx context.Context, items []namedItem) error {
	for _, group := range s.group(items) {
		if _, err := s.do(s.begin(ctx), verbReset, group); err != nil {
			return fmt.Errorf("redis: forgetting all keys: %w", err)
		}
	}
	return nil
}
