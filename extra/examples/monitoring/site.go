package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
	promobserve "github.com/floodgate-go/floodgate/observe/prometheus"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// site is the site, and what ends it.
type site struct {
	handler http.Handler
	closers []func() error
}

func (s *site) close() (err error) {
	for i := range s.closers {
		err = errors.Join(err, s.closers[len(s.closers)-1-i]())
	}
	return err
}

// newSite returns the site. redis is an address, or empty.
func newSite(redis string) (_ *site, err error) {
	s := &site{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	shared, fallback, err := s.stores(redis)
	if err != nil {
		return nil, err
	}
	metrics := promobserve.New()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	client := keyfuncs.ClientIP(keyfuncs.Behind("X-Forwarded-For", "127.0.0.0/8"))

	// If Redis is gone, the API counts in the process.
	api, err := core.New(core.Config{Name: "api", Store: fallback, Observer: metrics, Rules: []core.Rule{
		{Name: "client", Key: client, Limits: []core.Limit{core.PerMinute(20)}},
	}})
	if err != nil {
		return nil, err
	}
	planned, err := core.New(core.Config{Name: "planned", Store: fallback, Observer: metrics, DryRun: true, Headers: core.HeadersOff, Rules: []core.Rule{
		{Name: "client", Key: client, Limits: []core.Limit{core.PerMinute(10)}},
	}})
	if err != nil {
		return nil, err
	}
	// The export must never run more than twice at a time: without Redis it does not run.
	slots, _ := shared.(inflight.Store) // nil: in this process
	export, err := inflight.New(inflight.Config{Name: "export", Max: 2, Key: everybody, Store: slots, Observer: metrics, MaxWait: 200 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, export.Close)
	guard, err := login.NewGuard(login.Config{Field: "username", ClientIP: client, Store: shared, Observer: metrics})
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, guard.Close)

	mux := http.NewServeMux()
	mux.Handle("GET /api", httplimit.Middleware(api)(httplimit.Middleware(planned)(http.HandlerFunc(hello))))
	mux.Handle("GET /export", httplimit.Middleware(export)(http.HandlerFunc(runExport)))
	mux.Handle("POST /login", httplimit.Middleware(guard)(http.HandlerFunc(logIn)))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	s.handler = mux
	return s, nil
}

// stores returns the store for the counters, nil for the process, and the same with a
// fallback.
func (s *site) stores(redis string) (shared, fallback core.Store, err error) {
	if redis == "" {
		return nil, nil, nil
	}
	client := goredis.NewClient(&goredis.Options{Addr: redis, DialerRetries: 1, ContextTimeoutEnabled: true})
	// A busy laptop may stop a process for longer than the default of 100 ms.
	store := redisstore.New(client, redisstore.Timeout(time.Second))
	s.closers = append(s.closers, client.Close, store.Close)
	r, err := resilient.New(store, resilient.Config{})
	if err != nil {
		return nil, nil, err
	}
	s.closers = append(s.closers, r.Close)
	return store, r, nil
}

// everybody is the key of all requests: they share the slots.
func everybody(dst []byte, _ core.Request) ([]byte, error) { return dst, nil }

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }

// runExport takes 50 milliseconds, or as long as the query says.
func runExport(w http.ResponseWriter, r *http.Request) {
	takes, err := time.ParseDuration(r.URL.Query().Get("takes"))
	if err != nil {
		takes = 50 * time.Millisecond
	}
	select {
	case <-time.After(takes):
		fmt.Fprintln(w, "all rows")
	case <-r.Context().Done(): // the client has gone away
	}
}

// logIn knows one password.
func logIn(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("password") != "correct horse" {
		http.Error(w, "wrong name or password", http.StatusUnauthorized)
		return
	}
	fmt.Fprintln(w, "welcome")
}
