// Package closing ends the counters of a store when the store is closed.
package closing

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
)

// Gate is open until its store is closed. Its methods may be called concurrently.
type Gate struct {
	closed atomic.Bool
	err    error
}

// New returns an open gate. store is the name of the store that its error begins with, such as
// "redis".
func New(store string) *Gate {
	return &Gate{err: fmt.Errorf("%s: %w", store, core.ErrClosed)}
}

// Close closes the gate. Closing it again does nothing.
func (g *Gate) Close() { g.closed.Store(true) }

// Err returns nil while the gate is open, and then an error that wraps core.ErrClosed.
func (g *Gate) Err() error {
	if g.closed.Load() {
		return g.err
	}
	return nil
}

// Open returns Counters that pass everything on to inner while the gate is open. After that every
// call returns Err, even if inner could answer from memory. They are a resilient.Locator if inner
// is one.
func (g *Gate) Open(inner core.Counters) core.Counters {
	if l, ok := inner.(locator); ok {
		return located{counters{inner, g}, l}
	}
	return counters{inner, g}
}

type locator interface {
	ServerOf(rule int, key []byte) string
}

type located struct {
	counters
	locator
}

type counters struct {
	inner core.Counters
	gate  *Gate
}

// Do implements [core.Counters].
func (c counters) Do(ctx context.Context, b *core.Batch) error {
	if err := c.gate.Err(); err != nil {
		return err
	}
	return c.inner.Do(ctx, b)
}

// Reopen implements [core.Counters].
func (c counters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	if err := c.gate.Err(); err != nil {
		return nil, err
	}
	inner, err := c.inner.Reopen(rules)
	if err != nil {
		return nil, err
	}
	return c.gate.Open(inner), nil
}
