package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
)

// Close gives up the names of the limiters that the store counts for, so that
// another Store of this process can count for them. Every later call returns an
// error that wraps [core.ErrClosed]; operations under way end as they would have.
// The client stays open: it is the application's. Closing again does nothing.
// Close never fails.
//
// A program that keeps its limiters for as long as it runs need not call it. A
// Store that nothing refers to any more gives up its names at some time by
// itself.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.names.Release()
	return nil
}

var errClosed = fmt.Errorf("redis: %w", core.ErrClosed)

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

// serverOf names the server of a client, as far as the client tells: the address
// and the database. A client that does not tell (one that asks sentinels, one
// that finds its cluster by a function, or the application's own type) is its
// own server.
func serverOf(client Client) string {
	itself := fmt.Sprintf("the server of a %T (%[1]p)", client)
	switch c := client.(type) {
	case *redis.Client:
		if c == nil || c.Options().Addr == "FailoverClient" { // what redis.NewFailoverClient writes there
			return itself
		}
		return fmt.Sprintf("redis %s/%d", c.Options().Addr, c.Options().DB)
	case *redis.ClusterClient:
		if c == nil || len(c.Options().Addrs) == 0 || c.Options().ClusterSlots != nil {
			return itself
		}
		return "redis cluster " + strings.Join(slices.Sorted(slices.Values(c.Options().Addrs)), ",")
	case *redis.Ring:
		if c == nil || len(c.Options().Addrs) == 0 {
			return itself
		}
		return fmt.Sprintf("redis ring %s/%d", strings.Join(slices.Sorted(maps.Values(c.Options().Addrs)), ","), c.Options().DB)
	}
	return itself
}
