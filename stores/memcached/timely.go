package memcachedstore

import (
	"context"
	"fmt"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/stores/internal/intime"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// timely is a swapstore.Store whose operations return in time and then continue
// in the background: a charge is not lost because the client has hung up.
type timely struct {
	swaps    *swapstore.Store
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
// a Rebind, both Bounds may be used: see resilient.Divisible.
func (b timelyBound) Beside(rules []core.StoreRule) (core.Bound, error) { return b.Rebind(rules) }

func (b timelyBound) Take(ctx context.Context, batch *core.Batch) error {
	return b.do(ctx, batch, core.Bound.Take)
}

func (b timelyBound) Charge(ctx context.Context, batch *core.Batch) error {
	return b.do(ctx, batch, core.Bound.Charge)
}

func (b timelyBound) Refund(ctx context.Context, batch *core.Batch) error {
	return b.do(ctx, batch, core.Bound.Refund)
}

func (b timelyBound) Reset(ctx context.Context, batch *core.Batch) error {
	return b.do(ctx, batch, core.Bound.Reset)
}

// Block implements [core.Blocker]. A block longer than memcached keeps a value is an error that wraps
// [core.ErrConfig].
func (b timelyBound) Block(ctx context.Context, batch *core.Batch, d time.Duration) error {
	if most := b.options.longestLifetime(); d > most {
		return fmt.Errorf("%w: limiter %q: blocking for %v: a store in memcached keeps values for at most %v", core.ErrConfig, b.limiter, d, most)
	}
	return b.do(ctx, batch, func(inner core.Bound, ctx context.Context, batch *core.Batch) error {
		return inner.(core.Blocker).Block(ctx, batch, d)
	})
}

// Grant implements [core.Granter].
func (b timelyBound) Grant(ctx context.Context, batch *core.Batch) error {
	return b.do(ctx, batch, func(inner core.Bound, ctx context.Context, batch *core.Batch) error {
		return inner.(core.Granter).Grant(ctx, batch)
	})
}

func (b timelyBound) do(ctx context.Context, batch *core.Batch, op intime.Op) error {
	err := b.runner.Do(ctx, b.inner, batch, func(inner core.Bound, ctx context.Context, batch *core.Batch) error {
		// The caller's context ends only the waiting; the operation has a
		// deadline of its own.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.options.timeout)
		defer cancel()
		leave, err := b.turns.take(ctx, batch.Items)
		if err != nil {
			return notcharged.Error(err)
		}
		defer leave()
		return op(inner, ctx, batch)
	})
	if err != nil {
		return fmt.Errorf("limiter %q: %w", b.limiter, err)
	}
	return nil
}

var _ core.Leaser = timelyBound{}

// Release implements [core.Leaser].
func (b timelyBound) Release(ctx context.Context, batch *core.Batch) error {
	return b.do(ctx, batch, func(inner core.Bound, ctx context.Context, batch *core.Batch) error {
		return limits.Release(ctx, inner, batch)
	})
}

// Renew implements [core.Leaser].
func (b timelyBound) Renew(ctx context.Context, batch *core.Batch) error {
	return b.do(ctx, batch, func(inner core.Bound, ctx context.Context, batch *core.Batch) error {
		return limits.Renew(ctx, inner, batch)
	})
}

// ServerOf returns the address of the server that has the counters of a key of
// the rule with this index: package resilient gives each server a circuit
// breaker.
func (b timelyBound) ServerOf(rule int, key []byte) string {
	addr, err := b.selector.PickServer(b.rules[rule].StoredKey(b.limiter, key))
	if err != nil {
		return ""
	}
	return addr.String()
}
