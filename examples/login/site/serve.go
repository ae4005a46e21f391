package site

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Server is what serves a framework's application: *http.Server is one.
type Server interface {
	Serve(l net.Listener) error
	Shutdown(ctx context.Context) error
}

// Main is the program: it reads the flags, makes the site's limits
// and serves what server makes of them.
func Main(server func(*Site) Server) {
	if err := run(parseFlags(), server); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// HTTPServer returns a server for frameworks that are an http.Handler.
func HTTPServer(h http.Handler) Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second, // ends a body that trickles in
	}
}

// run serves until the program is told to stop, and lets requests under way
// finish.
func run(o Options, server func(*Site) Server) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := New(o, slog.Default(), nil)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // there is nobody left to tell
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return err
	}
	slog.Info("listening", "url", "http://"+listener.Addr().String())
	srv := server(s)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		stop() // a second signal ends the program at once
	}
	grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return srv.Shutdown(grace)
}
