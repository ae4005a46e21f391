package site

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/floodgate-go/floodgate/core"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/pgbackend"
	"github.com/floodgate-go/floodgate/stores/synced/redisbackend"
)

// openSynced opens a synced store: the URL is its backend's, with a parameter
// interval, 100ms where there is none.
func openSynced(text string, timeout time.Duration, clock func() time.Time) (stores, error) {
	u, err := url.Parse(text)
	if err != nil {
		return stores{}, errors.New("synced: the URL cannot be read")
	}
	interval := 100 * time.Millisecond
	query := u.Query()
	if text := query.Get("interval"); text != "" {
		if interval, err = time.ParseDuration(text); err != nil {
			return stores{}, fmt.Errorf("interval: %q: want a duration such as 100ms", text)
		}
	}
	query.Del("interval")
	u.RawQuery = query.Encode()
	backend, loginName, closeBackend, err := openBackend(u)
	if err != nil {
		return stores{}, err
	}
	api, err := synced.New(backend, synced.Config{Namespace: "site", Interval: interval, Clock: clock})
	if err != nil {
		return stores{}, errors.Join(err, closeBackend())
	}
	closeAPI := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return errors.Join(api.Close(ctx), closeBackend())
	}
	login, closeLogin, err := openStore(loginName, timeout, clock)
	if err != nil {
		return stores{}, errors.Join(err, closeAPI())
	}
	return stores{api, login, core.Limit{Quota: 5, Window: time.Minute, Aligned: true}, func() error { return errors.Join(closeLogin(), closeAPI()) }}, nil
}

// openBackend returns a synced store's backend, and where logins are counted.
func openBackend(u *url.URL) (backend synced.Backend, login string, closeBackend func() error, err error) {
	if u.Scheme == "postgres" || u.Scheme == "postgresql" {
		pool, err := pgxpool.New(context.Background(), u.String())
		if err != nil {
			return nil, "", nil, errors.New("synced: the PostgreSQL URL cannot be read") // the error has the password in it
		}
		backend := pgbackend.New(pool)
		if err := backend.CreateTables(context.Background()); err != nil {
			pool.Close()
			return nil, "", nil, err
		}
		return backend, "memory", func() error { pool.Close(); return nil }, nil
	}
	if !strings.HasPrefix(u.Scheme, "redis") && u.Scheme != "unix" {
		return nil, "", nil, fmt.Errorf("scheme %q: want %s", "synced+"+u.Scheme, Stores)
	}
	client, err := redisstore.NewClient(u.String())
	if err != nil {
		return nil, "", nil, err
	}
	return redisbackend.New(client), u.String(), client.Close, nil
}
