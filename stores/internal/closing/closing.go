// Package closing ends the bounds of a store when the store is closed.
package closing

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
)

// Gate is open until its store is closed. Its methods may be called concurrently.
type Gate struct {
	closed atomic.Bool
	err    error
}

// New returns an open gate. store is the name of the store that its error
// begins with, such as "redis".
func New(store string) *Gate {
	return &Gate{err: fmt.Errorf("%s: %w", store, core.ErrClosed)}
}

// Close closes the gate. Closing it again does nothing.
func (g *Gate) Close() { g.closed.Store(true) }

// Err returns nil while the gate is open, and then an error that wraps
// core.ErrClosed.
func (g *Gate) Err() error {
	if g.closed.Load() {
		return g.err
	}
	return nil
}

// Bind returns a Bound that passes everything on to inner while the gate is
// open. After that every call returns Err, even if inner could answer from
// memory.
func (g *Gate) Bind(inner core.Bound) core.Bound { return bound{inner, g} }

type bound struct {
	inner core.Bound
	gate  *Gate
}

func (b bound) Take(ctx context.Context, batch *core.Batch) error {
	if err := b.gate.Err(); err != nil {
		return err
	}
	return b.inner.Take(ctx, batch)
}

func (b bound) Charge(ctx context.Context, batch *core.Batch) error {
	if err := b.gate.Err(); err != nil {
		return err
	}
	return b.inner.Charge(ctx, batch)
}

func (b bound) Refund(ctx context.Context, batch *core.Batch) error {
	if err := b.gate.Err(); err != nil {
		return err
	}
	return b.inner.Refund(ctx, batch)
}

func (b bound) Reset(ctx context.Context, batch *core.Batch) error {
	if err := b.gate.Err(); err != nil {
		return err
	}
	return b.inner.Reset(ctx, batch)
}

func (b bound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	if err := b.gate.Err(); err != nil {
		return nil, err
	}
	inner, err := b.inner.Rebind(rules)
	if err != nil {
		return nil, err
	}
	return bound{inner, b.gate}, nil
}

// Block passes on to inner, if it is a core.Blocker.
func (b bound) Block(ctx context.Context, batch *core.Batch, d time.Duration) error {
	if err := b.gate.Err(); err != nil {
		return err
	}
	if blocker, ok := b.inner.(core.Blocker); ok {
		return blocker.Block(ctx, batch, d)
	}
	return core.ErrUnsupported
}

// Grant passes on to inner, if it is a core.Granter.
func (b bound) Grant(ctx context.Context, batch *core.Batch) error {
	if err := b.gate.Err(); err != nil {
		return err
	}
	if granter, ok := b.inner.(core.Granter); ok {
		return granter.Grant(ctx, batch)
	}
	return core.ErrUnsupported
}

// ResetAll passes on to inner, if it is a core.ResetterOfAll.
func (b bound) ResetAll(ctx context.Context) error {
	if err := b.gate.Err(); err != nil {
		return err
	}
	if r, ok := b.inner.(core.ResetterOfAll); ok {
		return r.ResetAll(ctx)
	}
	return core.ErrUnsupported
}

// ServerOf returns the server of a key, "" if inner does not report it. Package
// resilient finds this method by its signature: see resilient.Locator.
func (b bound) ServerOf(rule int, key []byte) string {
	if l, ok := b.inner.(interface{ ServerOf(int, []byte) string }); ok {
		return l.ServerOf(rule, key)
	}
	return ""
}

// Beside returns the result of inner's Beside: see resilient.Divisible. It
// returns nil, without an error, if inner has no such method.
func (b bound) Beside(rules []core.StoreRule) (core.Bound, error) {
	if err := b.gate.Err(); err != nil {
		return nil, err
	}
	d, ok := b.inner.(interface {
		Beside([]core.StoreRule) (core.Bound, error)
	})
	if !ok {
		return nil, nil
	}
	inner, err := d.Beside(rules)
	if err != nil || inner == nil {
		return nil, err
	}
	return bound{inner, b.gate}, nil
}

var _ core.Leaser = bound{}

// Release implements [core.Leaser].
func (b bound) Release(ctx context.Context, batch *core.Batch) error {
	if err := b.gate.Err(); err != nil {
		return err
	}
	return limits.Release(ctx, b.inner, batch)
}

// Renew implements [core.Leaser].
func (b bound) Renew(ctx context.Context, batch *core.Batch) error {
	if err := b.gate.Err(); err != nil {
		return err
	}
	return limits.Renew(ctx, b.inner, batch)
}
