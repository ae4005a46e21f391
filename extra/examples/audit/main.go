// Command audit writes each denied request into an SQLite database, by a hook that embeds the
// defaults, and lists them on a page. No request waits for the database.
//
//	cd extra && go run ./examples/audit
//
// Request /api more than five times in a minute, and look at /audit. journal.go is what an
// application would copy.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *addr)
	if err == nil {
		err = run(ctx, listener, *file, *keep)
	}
	if err != nil {
		slog.Error("the program ends", "error", err)
		os.Exit(1) //nolint:gocritic // stop gives back what the process's end does
	}
}

// run serves until ctx ends, and then writes what is left. It closes listener.
func run(ctx context.Context, listener net.Listener, file string, keep int) (err error) {
	defer listener.Close() //nolint:errcheck // the server has closed it, if there was one
	journal, err := OpenJournal(file, keep)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
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
		_, _ = w.Write([]byte("hello\n"))
	})))
	mux.Handle("GET /audit", auditPage(j))
	mux.Handle("GET /{$}", http.RedirectHandler("/audit", http.StatusSeeOther))
	return mux, nil
}

// auditHooks writes each denied request into the journal, and leaves the response to the defaults.
type auditHooks struct {
	core.DefaultHooks
	journal *Journal
}

// OnDisallowed implements core.Hooks.
func (h auditHooks) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	e := Entry{
		At: time.Now(), Method: cut(r.Method()), Route: r.Route(), Client: r.RemoteAddr(), UserAgent: cut(strings.Join(r.HeaderValues("User-Agent"), " ")),
		Limiter: d.Limiter(), Rule: d.Rule(), Reason: d.Reason.String(), Counter: d.StoredKey(), RetryAfter: d.RetryAfter,
	}
	if d.Rule() != "" { // otherwise no limit applied: the limiter could not decide
		e.Limit = d.Limit().String()
	}
	h.journal.Write(e)
	return h.DefaultHooks.OnDisallowed(r, d)
}

const mostText = 200 // bytes of what a client writes

// cut bounds what a client can make the program keep. It copies: a part of a string keeps the whole
// of it in memory.
func cut(s string) string { return strings.Clone(s[:min(len(s), mostText)]) }
