package site

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// Stores says what openStore understands, for the help of -store.
const Stores = "memory, redis://host:port/db (also rediss, unix, redis+cluster, redis+sentinel), memcached://host:port,host:port, " +
	"synced+redis://host:port/db?interval=100ms, or synced+postgres://user@host:port/db?interval=100ms"

// stores are where the site counts.
type stores struct {
	api   core.Store
	login core.Store
	limit core.Limit // of the API, as its store can count it
	close func() error
}

// openStores opens the stores that a name or URL describes. Behind a synced
// one, only the API is counted so: logins are counted exactly, in the same Redis
// or, with PostgreSQL, in this process.
func openStores(o Options, clock func() time.Time) (stores, error) {
	if shared, found := strings.CutPrefix(o.Store, "synced+"); found {
		return openSynced(shared, o.StoreTimeout, clock)
	}
	store, closeStore, err := openStore(o.Store, o.StoreTimeout, clock)
	return stores{store, store, core.PerMinute(5), closeStore}, err
}

// openStore opens the store that a name or URL describes. While a shared store
// does not answer, limits are counted in this process.
func openStore(name string, timeout time.Duration, clock func() time.Time) (store core.Store, closeStore func() error, err error) {
	if name == "memory" {
		m, err := core.NewMemory(core.MemoryConfig{Clock: clock})
		if err != nil {
			return nil, nil, err
		}
		return m, m.Close, nil
	}
	scheme, rest, isURL := strings.Cut(name, "://")
	if !isURL {
		return nil, nil, fmt.Errorf("%q: want %s", name, Stores)
	}
	var shared core.Store
	closeShared := func() error { return nil }
	switch scheme {
	case "redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel":
		client, err := redisstore.NewClient(name)
		if err != nil {
			return nil, nil, err
		}
		opts := []redisstore.Option{redisstore.Timeout(timeout)}
		if clock != nil {
			opts = append(opts, redisstore.Clock(clock))
		}
		r := redisstore.New(client, opts...)
		shared, closeShared = r, func() error { return errors.Join(r.Close(), client.Close()) }
	case "memcached":
		opts := []memcachedstore.Option{memcachedstore.Timeout(timeout)}
		if clock != nil {
			opts = append(opts, memcachedstore.Clock(clock))
		}
		m, err := memcachedstore.New(strings.Split(rest, ","), opts...)
		if err != nil {
			return nil, nil, err
		}
		shared, closeShared = m, m.Close
	default:
		return nil, nil, fmt.Errorf("scheme %q: want %s", scheme, Stores)
	}
	r, err := resilient.New(shared, resilient.Config{Clock: clock})
	if err != nil {
		return nil, nil, errors.Join(err, closeShared())
	}
	return r, func() error { return errors.Join(r.Close(), closeShared()) }, nil
}
