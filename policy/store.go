package policy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/policy/internal/file"
	"github.com/floodgate-go/floodgate/policy/internal/words"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/pgbackend"
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
		backend, closeBackend, timeout := openBackend(m, s.Synced)
		if m.found() {
			return opened{}
		}
		store, err := synced.New(backend, synced.Config{Namespace: "policy", Interval: s.Synced.Interval, Timeout: timeout, Log: o.log})
		if err != nil {
			return fail(errors.Join(err, closeBackend()))
		}
		return opened{store, nil, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
			defer cancel()
			return errors.Join(store.Close(ctx), closeBackend())
		}}
	}
	var result opened
	if s.Memcached != nil {
		opts := []memcachedstore.Option{memcachedstore.Timeout(s.Memcached.Timeout)}
		if !s.RememberDenials {
			opts = append(opts, memcachedstore.WithoutDenialCache())
		}
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
		if !s.RememberDenials {
			opts = append(opts, redisstore.WithoutDenialCache())
		}
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

// openBackend opens the backend of a synced store; timeout bounds its answers.
func openBackend(m *mistakes, s *file.Synced) (backend synced.Backend, closeBackend func() error, timeout time.Duration) {
	if s.Postgres != nil {
		backend, closeBackend = openPostgres(m, s.Postgres)
		return backend, closeBackend, s.Postgres.Timeout
	}
	client := openRedis(m, s.Redis)
	if m.found() {
		return nil, nil, 0
	}
	return redisbackend.New(client), client.Close, s.Redis.Timeout
}

// openRedis returns a client of a Redis server or cluster, unless it adds a mistake.
func openRedis(m *mistakes, s *file.Redis) redis.UniversalClient {
	o := redis.UniversalOptions{
		Addrs: s.Addresses, Username: m.secret(s.User), Password: m.secret(s.Password), DB: s.DB,
		DialerRetries: 1, // more take longer than the timeout, which then hides the cause
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

// openPostgres returns a backend over a pool of connections. It does not connect
// yet. closeBackend closes the pool.
func openPostgres(m *mistakes, s *file.Postgres) (backend synced.Backend, closeBackend func() error) {
	user, password := m.secret(s.User), m.secret(s.Password)
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		m.add(s.At(), err.Error(), "")
	}
	if m.found() {
		return nil, nil
	}
	mode := "disable"
	if s.TLS {
		mode = "verify-full"
	}
	var text strings.Builder
	for _, field := range [][2]string{{"host", host}, {"port", port}, {"user", user}, {"password", password}, {"dbname", s.Database}, {"sslmode", mode}} {
		// https://www.postgresql.org/docs/current/libpq-connect.html, "Keyword/Value Connection Strings"
		fmt.Fprintf(&text, "%s='%s' ", field[0], strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(field[1]))
	}
	config, err := pgxpool.ParseConfig(strings.TrimSpace(text.String()))
	if err != nil {
		// The error quotes the settings, and with them perhaps the password.
		err = errors.New("address, user, password or database cannot be used: want host:port with a port from 1 to 65535, and no zero bytes")
	} else {
		config.ConnConfig.ConnectTimeout = s.Timeout
		var pool *pgxpool.Pool
		if pool, err = pgxpool.NewWithConfig(context.Background(), config); err == nil {
			return pgbackend.New(pool), func() error { pool.Close(); return nil }
		}
	}
	m.add(s.At(), words.Reason(err), "")
	return nil, nil
}

// ErrNoRedis is wrapped by the error of [RedisOf] for a file whose policies do not
// count in Redis.
var ErrNoRedis = errors.New("no Redis")

// RedisOf returns a client of the Redis in the section store.redis of a policy file:
// for programs that look at the counters of a service. name is the file's name in
// errors, and text is the file. server describes the Redis in words, without user and
// password. Nothing is connected yet, and the caller closes the client. If the file
// has another store or none, the error wraps [ErrNoRedis]; otherwise it has all
// mistakes of the file: see [Errors]. It may be called concurrently.
func RedisOf(name string, text []byte) (client redis.UniversalClient, server string, err error) {
	m := &mistakes{file: name}
	spec, problems := file.Read(text, file.Options{User: func(core.Request) string { return "" }, Tier: true})
	for _, p := range problems {
		m.add(p.Place, p.Text, p.Hint)
	}
	if m.found() {
		return nil, "", m.join()
	}
	switch s := spec.Store; {
	case s == nil:
		return nil, "", fmt.Errorf("%w: %s has no field store", ErrNoRedis, name)
	case s.Memcached != nil:
		return nil, "", fmt.Errorf("%w: the store of %s is memcached", ErrNoRedis, name)
	case s.Redis == nil:
		return nil, "", fmt.Errorf("%w: the store of %s is synced, whose counters have another form", ErrNoRedis, name)
	}
	s := spec.Store.Redis
	if client = openRedis(m, s); m.found() {
		return nil, "", m.join()
	}
	server = fmt.Sprintf("Redis %s, database %d", strings.Join(s.Addresses, ", "), s.DB)
	if s.Cluster {
		server = "Redis cluster " + strings.Join(s.Addresses, ", ")
	}
	return client, server, nil
}
