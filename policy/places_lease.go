package policy

import (
	"context"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

var _ core.Leaser = (*placesBound)(nil)

// Release implements [core.Leaser].
func (b *placesBound) Release(ctx context.Context, whole *core.Batch) error {
	return b.both(whole, func(bound core.Bound, part *core.Batch) error {
		return doLeases(bound, func(l core.Leaser) error { return l.Release(ctx, part) })
	})
}

// Renew implements [core.Leaser].
func (b *placesBound) Renew(ctx context.Context, whole *core.Batch) error {
	return b.both(whole, func(bound core.Bound, part *core.Batch) error {
		return doLeases(bound, func(l core.Leaser) error { return l.Renew(ctx, part) })
	})
}

// checkLeasers returns an error if one of the stores does not count the leases of its
// rules.
func (b *placesBound) checkLeasers() error {
	if err := checkLeaser(b.local, b.localRules); err != nil {
		return err
	}
	return checkLeaser(b.shared, b.sharedRules)
}

func checkLeaser(b core.Bound, rules []core.StoreRule) error {
	if _, ok := b.(core.Leaser); ok {
		return nil
	}
	for _, r := range rules {
		for _, l := range r.Limits {
			if l.Algorithm == core.Leases {
				return fmt.Errorf("%w: rule %q, limit %q: Algorithm: %s: the store cannot count what is in flight (%T is no core.Leaser)", core.ErrConfig, r.Name, l.Name, l.Algorithm, b)
			}
		}
	}
	return nil
}

func doLeases(b core.Bound, do func(core.Leaser) error) error {
	if l, ok := b.(core.Leaser); ok {
		return do(l)
	}
	return core.ErrUnsupported
}

// releaseLocal ends the leases of a part that the local store has taken.
func (b *placesBound) releaseLocal(ctx context.Context, part *core.Batch) error {
	for i := range part.Items {
		if part.Items[i].Lease != 0 {
			return doLeases(b.local, func(l core.Leaser) error { return l.Release(ctx, part) })
		}
	}
	return nil
}
