package redisstore

import (
	"context"
	"errors"
	"slices"

	"github.com/floodgate-go/floodgate/core"
)

// withLease reports whether the calls of a verb have leases. Charges and refunds leave
// them alone, but for the refund of a take that has to be undone: see undo.
func withLease(verb byte) bool {
	return verb == verbTake || verb == verbBack || verb == verbRelease || verb == verbRenew
}

// undo makes a refund end the leases that the take has given.
func (c *call) undo(items []namedItem) {
	for i := range c.items {
		c.items[i].lease = items[i].Lease
	}
}

// leases makes the calls of a verb for a batch: one for each lease. They travel together as far
// as they may. None waits for another, and none fails because another does.
func (b *counters) leases(ctx context.Context, verb byte, batch *core.Batch) error {
	n := b.items(batch)
	defer n.free()
	s, op := b.store, b.store.begin(ctx)
	n.items = slices.DeleteFunc(n.items, func(it namedItem) bool { return !it.rule.leases || it.Cost == 0 })
	if len(n.items) == 0 {
		return nil
	}
	err := s.leaseGroups(op, verb, s.group(n.items))
	if err != nil && crossesSlots(err) {
		s.layout.Store(oneSlot)
		err = s.leaseGroups(op, verb, s.group(n.items))
	}
	return err
}

func (s *Store) leaseGroups(op operation, verb byte, groups [][]namedItem) error {
	if len(groups) == 1 && len(groups[0]) == 1 {
		_, err := s.do(op, verb, groups[0])
		return err
	}
	var pending []*call
	for _, g := range groups {
		for some := range slices.Chunk(g, 1) {
			c := s.newCall(op, verb, some)
			s.start(c)
			pending = append(pending, c)
		}
	}
	var errs []error
	for _, c := range pending {
		_, err := c.wait()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
