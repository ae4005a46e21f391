// Command tokens streams answers word by word, and limits the words of each API key. A
// request reserves 100 words, and is charged those that were sent.
//
//	go run ./examples/tokens
//	curl -N -H 'X-Api-Key: trial-11c2' 'http://127.0.0.1:8080/answer?words=20'
//
// The quotas of keys are in examples/tokens/limits.yaml. Change the file while the program
// runs.
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
	"strconv"
	"syscall"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/policy"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	limits := flag.String("limits", "examples/tokens/limits.yaml", "the policy file")
	pace := flag.Duration("pace", 20*time.Millisecond, "time between two words")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *limits, *pace, slog.Default(), func(net.Addr) {}); err != nil {
		slog.Error("the server ends", "error", err)
		os.Exit(1) //nolint:gocritic // stop gives back what the process's end does
	}
}

// run serves until ctx ends. listening is called once it does.
func run(ctx context.Context, addr, limits string, pace time.Duration, log *slog.Logger, listening func(net.Addr)) (err error) {
	set, err := policy.Watch(ctx, limits, policy.Log(log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	log.Info("listening", "url", "http://"+listener.Addr().String())
	listening(listener.Addr())
	mux := http.NewServeMux()
	mux.Handle("GET /answer", httplimit.Middleware(set)(answer(pace)))
	server := &http.Server{Handler: known(mux), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return server.Shutdown(grace)
	}
}

// known answers requests without a key. A real program also checks that it has issued the key.
func known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values("X-Api-Key")) != 1 {
			http.Error(w, "send one X-Api-Key", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answer streams as many words as the client asks for, until the client has gone.
func answer(pace time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		words, err := strconv.Atoi(r.FormValue("words"))
		if err != nil || words < 1 || words > 5000 {
			httplimit.SetCost(r.Context(), 0)
			http.Error(w, "words: want a number from 1 to 5000", http.StatusBadRequest)
			return
		}
		sent := int64(0)
		defer func() { httplimit.SetCost(r.Context(), sent) }()
		stream := http.NewResponseController(w)
		for i := range words {
			if _, err := fmt.Fprintf(w, "word%d ", i+1); err != nil {
				return
			}
			if err := stream.Flush(); err != nil {
				return
			}
			sent++
			select {
			case <-time.After(pace):
			case <-r.Context().Done():
				return
			}
		}
		_, _ = fmt.Fprintln(w)
	})
}
