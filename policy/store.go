package policy

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/policy/internal/file"
	"github.com/floodgate-go/floodgate/policy/internal/words"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/redisbackend"
)

// opened is an open store.
type opened struct {
	store core.Store
	slots inflight.Store // nil: it keeps none
	close func() error
}

// closeWithin bounds the last exchange of a synced store.
const closeWithin = 5 * time.Second

// openStore opens the store that a store section describes, or adds to m what is wrong.
// Only a synced store connects before the first decision.
func openStore(m *mistakes, s *file.Store, o *options) opened {
	fail := func(err error) opened {
		m.add(s.At(), words.Reason(err), "")
		return opened{}
	}
	if s.Synced != nil {
		client := openRedis(m, s.Synced.Redis)
		if m.found() {
			return opened{}
		}
		store, err := synced.New(redisbackend.New(client), synced.Config{Namespace: "policy", Interval: s.Synced.Interval, Timeout: s.Synced.Redis.Timeout, Log: o.log})
		if err != nil {
			return fail(errors.Join(err, client.Close()))
		}
		return opened{store, nil, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
			defer cancel()
			return errors.Join(store.Close(ctx), client.Close())
		}}
	}
	var result opened
	if s.Memcached != nil {
		opts := []memcachedstore.Option{memcachedstore.Timeout(s.Memcached.Timeout)}
		if o.apart {
			opts = append(opts, memcachedstore.AnotherInstance())
		}
		store, err := memcachedstore.New(s.Memcached.Servers, opts...)
		if err != nil {
			return fail(err)
		}
		result = opened{store, nil, store.Close}
	} else {
		client := openRedis(m, s.Redis)
		if m.found() {
			return opened{}
		}
		opts := []redisstore.Option{redisstore.Timeout(s.Redis.Timeout)}
		if o.apart {
			opts = append(opts, redisstore.AnotherInstance())
		}
		store := redisstore.New(client, opts...)
		result = opened{store, store, func() error { return errors.Join(store.Close(), client.Close()) }}
	}
	store, err := resilient.New(result.store, resilient.Config{OnFailure: s.OnFailure, Instances: s.Instances, Log: o.log})
	if err != nil {
		return fail(errors.Join(err, result.close()))
	}
	return opened{store, result.slots, func() error { return errors.Join(store.Close(), result.close()) }}
}

// openRedis returns a client of a Redis server or cluster, unless it adds a mistake.
func openRedis(m *mistakes, s *file.Redis) redis.UniversalClient {
	o := redis.UniversalOptions{
		Addrs: s.Addresses, Username: m.secret(s.User), Password: m.secret(s.Password), DB: s.DB,
		DialerRetries:         1, // more take longer than the timeout, which then hides the cause
		ContextTimeoutEnabled: true,
	}
	if s.TLS {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	switch {
	case m.found():
		return nil
	case s.Cluster:
		return redis.NewClusterClient(o.Cluster())
	}
	return redis.NewClient(o.Simple())
}
