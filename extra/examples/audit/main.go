// Command audit shows an audit log of denied requests: a hook that embeds the
// defaults and writes to an SQL database, without a request ever waiting for
// it, and a page that lists what was written.
//
//	cd extra && go run ./examples/audit
//
// Then ask for /api more than five times in a minute, and look at /audit.
// journal.go is what an application would copy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	file := flag.String("db", "audit.db", "SQLite database file")
	keep := flag.Int("keep", 10_000, "the most denied requests that are kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *addr)
	if err == nil {
		err = run(ctx, listener, *file, *keep)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then writes what is left. It closes listener.
func run(ctx context.Context, listener net.Listener, file string, keep int) (err error) {
	defer listener.Close() //nolint:errcheck // the server has closed it, where there was one
	journal, err := OpenJournal(file, keep)
	if err != nil {
		return err
	}
	defer func() {
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err = errors.Join(err, journal.Close(grace))
	}()
	app, err := routes(journal)
	if err != nil {
		return err
	}
	slog.Info("listening", "url", "http://"+listener.Addr().String())
	server := &http.Server{Handler: app, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return server.Shutdown(grace)
}

func routes(j *Journal) (http.Handler, error) {
	limiter, err := core.New(core.Config{
		Name:  "api",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(5)}}},
		Hooks: auditHooks{journal: j},
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /api", httplimit.Middleware(limiter)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	})))
	mux.Handle("GET /audit", auditPage(j))
	mux.Handle("GET /{$}", http.RedirectHandler("/audit", http.StatusSeeOther))
	return mux, nil
}

// auditHooks writes every denied request into the journal, and leaves the
// answer to the defaults.
type auditHooks struct {
	core.DefaultHooks
	journal *Journal
}

// OnDisallowed implements core.Hooks.
func (h auditHooks) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	h.journal.Write(entryOf(r, d))
	return h.DefaultHooks.OnDisallowed(r, d)
}

const maxUserAgent = 200

func entryOf(r core.Request, d core.Decision) Entry {
	e := Entry{
		At:         time.Now(),
		Method:     cut(r.Method(), 20),
		Route:      r.Route(),
		Client:     r.RemoteAddr(),
		Limiter:    d.Limiter(),
		Rule:       d.Rule(),
		Counter:    d.StoredKey(),
		Reason:     d.Reason.String(),
		RetryAfter: d.RetryAfter,
	}
	if d.Rule() != "" { // else no limit applied: the limiter could not decide
		e.Limit = d.Limit().String()
	}
	if host, _, err := net.SplitHostPort(e.Client); err == nil {
		e.Client = host
	}
	if agents := r.HeaderValues("User-Agent"); len(agents) > 0 {
		e.UserAgent = cut(agents[0], maxUserAgent)
	}
	return e
}

// cut bounds what a client can make us keep. It copies: a part of a string
// keeps the whole of it in memory, here a megabyte of header in each entry that
// waits.
func cut(s string, most int) string { return strings.Clone(s[:min(len(s), most)]) }
