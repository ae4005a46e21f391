// Command monitoring is a site whose limits Prometheus reads at /metrics: an API, a login
// form, and an export that runs twice at a time. A small generator sends requests, so that
// something moves at once.
//
//	cd extra && go run ./examples/monitoring -redis 127.0.0.1:6379
//
// Without -redis the counters are in the process, and there are no metrics of a store.
// The folder observe/dashboards has a dashboard for Grafana and rules for alerts.
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
	"syscall"
	"time"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	redis := flag.String("redis", "", "address of a Redis for the counters; empty: they are in this process")
	quiet := flag.Bool("quiet", false, "send no requests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *redis, !*quiet); err != nil {
		slog.Error("the program ends", "error", err)
		os.Exit(1) //nolint:gocritic // stop gives back what the process's end does
	}
}

// run serves until ctx ends.
func run(ctx context.Context, addr, redis string, busy bool) (err error) {
	s, err := newSite(redis)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	url := "http://" + listener.Addr().String()
	slog.Info("Prometheus can read the metrics", "url", url+"/metrics")
	server := &http.Server{Handler: s.handler, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if busy {
		go traffic(ctx, url)
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
		end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err = server.Shutdown(end)
	}
	return err
}
