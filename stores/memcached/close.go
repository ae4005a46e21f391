package memcachedstore

import (
	"context"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

var errClosed = fmt.Errorf("memcached: %w", core.ErrClosed)

// closing is a Bound that ends with its store, whatever it remembers.
type closing struct {
	inner core.Bound
	store *Store
}

func (b closing) Take(ctx context.Context, batch *core.Batch) error {
	if b.store.closed.Load() {
		return errClosed
	}
	return b.inner.Take(ctx, batch)
}

func (b closing) Refund(ctx context.Context, batch *core.Batch) error {
	if b.store.closed.Load() {
		return errClosed
	}
	return b.inner.Refund(ctx, batch)
}

func (b closing) Reset(ctx context.Context, batch *core.Batch) error {
	if b.store.closed.Load() {
		return errClosed
	}
	return b.inner.Reset(ctx, batch)
}

// resilient finds this method by its signature: without it one dead server would
// count as all of them.
var _ interface{ ServerOf(int, []byte) string } = closing{}

// ServerOf returns the server of a key: see package resilient.
func (b closing) ServerOf(rule int, key []byte) string {
	if l, ok := b.inner.(interface{ ServerOf(int, []byte) string }); ok {
		return l.ServerOf(rule, key)
	}
	return ""
}

func (b closing) Rebind(rules []core.StoreRule) (core.Bound, error) {
	if b.store.closed.Load() {
		return nil, errClosed
	}
	inner, err := b.inner.Rebind(rules)
	if err != nil {
		return nil, err
	}
	return closing{inner, b.store}, nil
}
