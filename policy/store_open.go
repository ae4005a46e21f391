package policy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/redisbackend"
)

// opened is a store at work.
type opened struct {
	store core.Store
	close func() error
}

// closeWithin is how long the last exchange of a synced store may take.
const closeWithin = 5 * time.Second

// openStore opens what a store section describes. Nothing is connected before
// the first decision, but for a synced store, which begins to exchange.
func (r *reader) openStore(s *storeSpec, options *options) (o opened, ok bool) {
	log := options.log
	switch s.kind {
	case "memcached":
		opts := []memcachedstore.Option{memcachedstore.Timeout(s.timeout)}
		if s.askAlways {
			opts = append(opts, memcachedstore.WithoutDenialCache())
		}
		if options.apart {
			opts = append(opts, memcachedstore.AnotherInstance())
		}
		m, err := memcachedstore.New(s.servers, opts...)
		if err != nil {
			r.bad(s.at, reason(err), "")
			return opened{}, false
		}
		return r.resilient(s, m, m.Close, log)
	case "redis":
		client, ok := r.client(s.redis)
		if !ok {
			return opened{}, false
		}
		opts := []redisstore.Option{redisstore.Timeout(s.timeout)}
		if s.askAlways {
			opts = append(opts, redisstore.WithoutDenialCache())
		}
		if options.apart {
			opts = append(opts, redisstore.AnotherInstance())
		}
		shared := redisstore.New(client, opts...)
		return r.resilient(s, shared, func() error { return errors.Join(shared.Close(), client.Close()) }, log)
	}
	backend, closeBackend, ok := r.backend(s)
	if !ok {
		return opened{}, false
	}
	store, err := synced.New(backend, synced.Config{Namespace: "policy", Interval: s.interval, Timeout: s.timeout, Log: log})
	if err != nil {
		r.bad(s.at, reason(errors.Join(err, closeBackend())), "")
		return opened{}, false
	}
	return opened{store, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		return errors.Join(store.Close(ctx), closeBackend())
	}}, true
}

// backend makes the backend of a synced store.
func (r *reader) backend(s *storeSpec) (backend synced.Backend, closeBackend func() error, ok bool) {
	if s.postgres != nil {
		return r.postgresBackend(s.postgres, s.timeout)
	}
	client, ok := r.client(s.redis)
	if !ok {
		return nil, nil, false
	}
	return redisbackend.New(client), client.Close, true
}

// resilient puts what the file says of a store that does not answer around it.
func (r *reader) resilient(s *storeSpec, shared core.Store, closeShared func() error, log *slog.Logger) (opened, bool) {
	store, err := resilient.New(shared, resilient.Config{
		Meanwhile: s.meanwhile, Instances: s.instances, Log: log,
	})
	if err != nil {
		r.bad(s.at, reason(errors.Join(err, closeShared())), "")
		return opened{}, false
	}
	return opened{store, func() error { return errors.Join(store.Close(), closeShared()) }}, true
}

// client makes the client of a Redis.
func (r *reader) client(s redisSpec) (redis.UniversalClient, bool) {
	before := len(r.errs)
	read := func(s secret) string {
		text, err := s.value()
		if err != nil {
			r.bad(s.at, err.Error(), "")
		}
		return text
	}
	o := redis.UniversalOptions{Addrs: s.addresses, Username: read(s.user), Password: read(s.password), DB: s.db}
	if s.tls {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if len(r.errs) > before {
		return nil, false
	}
	if s.cluster {
		return redis.NewClusterClient(o.Cluster()), true
	}
	return redis.NewClient(o.Simple()), true
}
