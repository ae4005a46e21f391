// Command queue serves a slow report of which each user may have three at a time. The next
// 20 requests of a user wait in line, for two seconds at most. The rest gets 429 at once. A page
// sends 30 requests and draws how long each has waited.
//
//	go run ./examples/queue
//
// Open http://127.0.0.1:8080. limits.yaml has the limits.
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

	"github.com/floodgate-go/floodgate/examples/queue/site"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, func(a net.Addr) { fmt.Printf("open http://%v\n", a) }); err != nil {
		slog.Error("the program ends", "error", err)
		os.Exit(1) //nolint:gocritic // stop gives back what the process's end does
	}
}

// run serves until ctx ends. listening is called once it does.
func run(ctx context.Context, addr string, listening func(net.Addr)) (err error) {
	s, err := site.New(http.DefaultTransport)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	listening(listener.Addr())
	server := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
