package redisstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Close releases the names of the limiters that the store counts for, so that
// another Store of this process can count for them. Every later call returns an
// error that wraps [core.ErrClosed]; operations under way end normally. Close
// does not close the client, which is the application's. Closing again does
// nothing. Close never fails.
//
// A program that keeps its limiters for as long as it runs need not call Close.
// A Store that has become garbage releases its names by itself at some time.
func (s *Store) Close() error {
	s.gate.Close()
	s.names.Release()
	return nil
}

// serverOf names the server of a client by its address and database, if the
// client reports them. A client that does not (one that asks Sentinels, one
// that finds its cluster by a function, or one of the application's own type)
// is its own server.
func serverOf(client Client) string {
	itself := fmt.Sprintf("the server of a %T (%[1]p)", client)
	switch c := client.(type) {
	case *redis.Client:
		if c == nil || c.Options().Addr == failoverAddr {
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
