package policy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/pgbackend"
)

// postgresSpec is the PostgreSQL server of a synced store.
type postgresSpec struct {
	at             value
	address        string
	user, password secret
	database       string
	tls            bool
}

func (s *postgresSpec) identity() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%q %q %q %q %t", s.address, s.user.words(), s.password.words(), s.database, s.tls)
}

// postgres reads the address, the user and the database of a PostgreSQL server.
func (r *reader) postgres(v value, s *storeSpec) {
	to := &postgresSpec{at: v}
	s.postgres = to
	given := r.mapping(v, "a mapping with address, user and database",
		field{"address", func(v value) {
			switch all := r.addresses(v); {
			case len(all) == 1:
				to.address = all[0]
			case len(all) > 1:
				r.bad(v, fmt.Sprintf("%d addresses: want one host:port", len(all)), "name the primary, or a proxy that leads to it")
			}
		}},
		field{"user", func(v value) { to.user = r.secret(v) }},
		field{"password", func(v value) { to.password = r.secret(v) }},
		field{"database", func(v value) { to.database, _ = r.text(v, "the name of a database") }},
		field{"tls", func(v value) { to.tls = r.boolean(v) }},
		field{"timeout", func(v value) { s.timeout = r.timeout(v) }},
	)
	if given == nil {
		return
	}
	for _, name := range []string{"address", "user", "database"} {
		if !has(given, name) {
			r.bad(v, "the field "+name+" is missing", "want address, user and database")
		}
	}
}

// postgresBackend makes the pool and the backend. Neither connects yet. closeBackend
// closes the pool.
func (r *reader) postgresBackend(s *postgresSpec, timeout time.Duration) (backend synced.Backend, closeBackend func() error, ok bool) {
	before := len(r.errs)
	read := func(s secret) string {
		text, err := s.value()
		if err != nil {
			r.bad(s.at, err.Error(), "")
		}
		return text
	}
	user, password := read(s.user), read(s.password)
	if len(r.errs) > before {
		return nil, nil, false
	}
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		r.bad(s.at, err.Error(), "")
		return nil, nil, false
	}
	mode := "disable"
	if s.tls {
		mode = "verify-full"
	}
	var text strings.Builder
	for _, field := range [][2]string{{"host", host}, {"port", port}, {"user", user}, {"password", password}, {"dbname", s.database}, {"sslmode", mode}} {
		// https://www.postgresql.org/docs/current/libpq-connect.html, "Keyword/Value Connection Strings"
		fmt.Fprintf(&text, "%s='%s' ", field[0], strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(field[1]))
	}
	config, err := pgxpool.ParseConfig(strings.TrimSpace(text.String()))
	if err != nil {
		// The error quotes the settings, and with them perhaps the password.
		err = errors.New("address, user, password or database cannot be used: want host:port with a port from 1 to 65535, and no zero bytes")
	} else {
		config.ConnConfig.ConnectTimeout = timeout
		var pool *pgxpool.Pool
		if pool, err = pgxpool.NewWithConfig(context.Background(), config); err == nil {
			var b *pgbackend.Backend
			if b, err = pgbackend.NewLazy(pool); err == nil {
				return b, func() error { pool.Close(); return nil }, true
			}
			pool.Close()
		}
	}
	r.bad(s.at, reason(err), "")
	return nil, nil, false
}
