// Command nethttp serves a limited API and a protected login form with
// net/http.
//
//	go run ./examples/login/nethttp
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
	"syscall"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/examples/login/site"
)

func main() {
	options, err := site.ParseFlags("nethttp", os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2)
	}
	if err := run(options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until the program is told to stop, and lets requests under way
// finish.
func run(o site.Options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := site.New(o, slog.Default(), nil)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // closing the in-process store never fails
	server := &http.Server{
		Addr:              o.Addr,
		Handler:           routes(s),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second, // ends a body that trickles in
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return err
	}
	slog.Info("listening", "url", "http://"+listener.Addr().String())
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		stop() // a second signal ends the program at once
	}
	grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return server.Shutdown(grace)
}

// routes is the whole of what is net/http's own.
func routes(s *site.Site) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /api", httplimit.Middleware(s.API)(http.HandlerFunc(api)))
	mux.Handle("POST /login", httplimit.Middleware(s.Login)(http.HandlerFunc(login)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(site.Page)
	})
	return mux
}

func api(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }

func login(w http.ResponseWriter, r *http.Request) {
	if !site.PasswordRight(r.PostFormValue("username"), r.PostFormValue("password")) {
		http.Error(w, "wrong username or password", http.StatusUnauthorized)
		return
	}
	fmt.Fprintln(w, "welcome")
}
