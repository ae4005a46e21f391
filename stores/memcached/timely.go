package memcachedstore

import (
	"context"
	"fmt"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/intime"
)

// timely is a SwapStore whose operations come back in time, and go on by
// themselves: a charge is not lost because the client has hung up.
type timely struct {
	swaps    *core.SwapStore
	runner   *intime.Runner
	options  options
	turns    *turns
	selector memcache.ServerSelector
}

func (s *timely) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	if err := s.options.check30Days(rules); err != nil {
		return nil, err
	}
	inner, err := s.swaps.Bind(limiter, rules)
	if err != nil {
		return nil, err
	}
	return timelyBound{s, limiter, rules, inner}, nil
}

type timelyBound struct {
	*timely
	limiter string
	rules   []core.StoreRule
	inner   core.Bound
}

func (b timelyBound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	if err := b.options.check30Days(rules); err != nil {
		return nil, err
	}
	inner, err := b.inner.Rebind(rules)
	if err != nil {
		return nil, err
	}
	return timelyBound{b.timely, b.limiter, rules, inner}, nil
}

// Beside returns a Bound for some of the limits of the same rules. Unlike after
// a Rebind, both may be used: see resilient.Divisible.
func (b timelyBound) Beside(rules []core.StoreRule) (core.Bound, error) { return b.Rebind(rules) }

func (b timelyBound) Take(ctx context.Context, batch *core.Batch) error {
	return b.do(ctx, batch, core.Bound.Take)
}

func (b timelyBound) Refund(ctx context.Context, batch *core.Batch) error {
	return b.do(ctx, batch, core.Bound.Refund)
}

func (b timelyBound) Reset(ctx context.Context, batch *core.Batch) error {
	return b.do(ctx, batch, core.Bound.Reset)
}

func (b timelyBound) do(ctx context.Context, batch *core.Batch, op intime.Op) error {
	err := b.runner.Do(ctx, b.inner, batch, func(inner core.Bound, ctx context.Context, batch *core.Batch) error {
		// The caller waits as long as it likes; the operation has its own time.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.options.timeout)
		defer cancel()
		leave, err := b.turns.take(ctx, batch.Items)
		if err != nil {
			return err
		}
		defer leave()
		return op(inner, ctx, batch)
	})
	if err != nil {
		return fmt.Errorf("limiter %q: %w", b.limiter, err)
	}
	return nil
}
