package policy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/file"
	"github.com/floodgate-go/floodgate/policy/internal/words"
	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/pgbackend"
)

// openPostgres returns a backend over a pool of connections. It does not connect
// yet. closeBackend closes the pool.
func openPostgres(m *mistakes, s *file.Postgres) (backend synced.Backend, closeBackend func() error, ok bool) {
	before := len(m.errs)
	user, password := m.secret(s.User), m.secret(s.Password)
	if len(m.errs) > before {
		return nil, nil, false
	}
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		m.add(s.At(), err.Error(), "")
		return nil, nil, false
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
			return pgbackend.New(pool), func() error { pool.Close(); return nil }, true
		}
	}
	m.add(s.At(), words.Reason(err), "")
	return nil, nil, false
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
	client, ok := openRedis(m, s)
	if !ok {
		return nil, "", m.join()
	}
	server = fmt.Sprintf("Redis %s, database %d", strings.Join(s.Addresses, ", "), s.DB)
	if s.Cluster {
		server = "Redis cluster " + strings.Join(s.Addresses, ", ")
	}
	return client, server, nil
}
