package policy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
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

// openStore opens the store that a store section describes. Only a synced store
// connects before the first decision.
func openStore(m *mistakes, s *file.Store, options *options) (o opened, ok bool) {
	log := options.log
	switch {
	case s.Memcached != nil:
		opts := []memcachedstore.Option{memcachedstore.Timeout(s.Memcached.Timeout)}
		if !s.RememberDenials {
			opts = append(opts, memcachedstore.WithoutDenialCache())
		}
		if options.apart {
			opts = append(opts, memcachedstore.AnotherInstance())
		}
		shared, err := memcachedstore.New(s.Memcached.Servers, opts...)
		if err != nil {
			m.add(s.At(), words.Reason(err), "")
			return opened{}, false
		}
		return withResilience(m, s, shared, shared.Close, log)
	case s.Redis != nil:
		client, ok := openRedis(m, s.Redis)
		if !ok {
			return opened{}, false
		}
		opts := []redisstore.Option{redisstore.Timeout(s.Redis.Timeout)}
		if !s.RememberDenials {
			opts = append(opts, redisstore.WithoutDenialCache())
		}
		if options.apart {
			opts = append(opts, redisstore.AnotherInstance())
		}
		shared := redisstore.New(client, opts...)
		o, ok = withResilience(m, s, shared, func() error { return errors.Join(shared.Close(), client.Close()) }, log)
		o.slots = shared
		return o, ok
	}
	backend, closeBackend, timeout, ok := openBackend(m, s.Synced)
	if !ok {
		return opened{}, false
	}
	store, err := synced.New(backend, synced.Config{Namespace: "policy", Interval: s.Synced.Interval, Timeout: timeout, Log: log})
	if err != nil {
		m.add(s.At(), words.Reason(errors.Join(err, closeBackend())), "")
		return opened{}, false
	}
	return opened{store, nil, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		return errors.Join(store.Close(ctx), closeBackend())
	}}, true
}

// openBackend opens the backend of a synced store; timeout bounds its answers.
func openBackend(m *mistakes, s *file.Synced) (backend synced.Backend, closeBackend func() error, timeout time.Duration, ok bool) {
	if s.Postgres != nil {
		backend, closeBackend, ok = openPostgres(m, s.Postgres)
		return backend, closeBackend, s.Postgres.Timeout, ok
	}
	client, ok := openRedis(m, s.Redis)
	if !ok {
		return nil, nil, 0, false
	}
	return redisbackend.New(client), client.Close, s.Redis.Timeout, true
}

// withResilience wraps a store with the file's settings for outages.
func withResilience(m *mistakes, s *file.Store, shared core.Store, closeShared func() error, log *slog.Logger) (opened, bool) {
	store, err := resilient.New(shared, resilient.Config{
		OnFailure: s.OnFailure, Instances: s.Instances, Log: log,
	})
	if err != nil {
		m.add(s.At(), words.Reason(errors.Join(err, closeShared())), "")
		return opened{}, false
	}
	return opened{store, nil, func() error { return errors.Join(store.Close(), closeShared()) }}, true
}

// openRedis returns a client of a Redis server or cluster.
func openRedis(m *mistakes, s *file.Redis) (redis.UniversalClient, bool) {
	before := len(m.errs)
	o := redis.UniversalOptions{
		Addrs: s.Addresses, Username: m.secret(s.User), Password: m.secret(s.Password), DB: s.DB,
		DialerRetries: 1, // more take longer than the timeout, which then hides the cause
	}
	if s.TLS {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if len(m.errs) > before {
		return nil, false
	}
	if s.Cluster {
		return redis.NewClusterClient(o.Cluster()), true
	}
	return redis.NewClient(o.Simple()), true
}
