// Command live serves an API behind a policy file, a login form, and a page on which an
// operator sees what the limits decide. A small generator sends requests, so that
// something moves at once.
//
//	go run ./examples/live
//
// Open http://127.0.0.1:8080/admin/limits. Whoever is on this machine is an operator:
// replace operator by the application's own check.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/live"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/policy"
)

//go:embed limits.yaml
var limits []byte

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	quiet := flag.Bool("quiet", false, "send no requests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, !*quiet, slog.Default(), func(net.Addr) {}); err != nil {
		slog.Error("the program ends", "error", err)
		os.Exit(1) //nolint:gocritic // stop gives back what the process's end does
	}
}

// run serves until ctx ends. listening is called once it does.
func run(ctx context.Context, addr string, busy bool, log *slog.Logger, listening func(net.Addr)) (err error) {
	page, err := live.New(live.Config{
		Authorize: operator,
		ShowKey:   readable,
		Log:       log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.Close()) }()
	gateway, err := policy.Parse("limits.yaml", limits, policy.Log(log), policy.WithObserver(page))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.Close()) }()
	guard, err := login.NewGuard(login.Config{Field: "username", Log: log, Observer: page})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, guard.Close()) }()
	page.Manage(gateway.Limiter())
	page.Manage(gateway.DryRun())
	page.ManageLogin("login", guard)

	mux := http.NewServeMux()
	mux.Handle("/", httplimit.Middleware(gateway)(http.HandlerFunc(hello)))
	mux.Handle("POST /login", httplimit.Middleware(guard)(http.HandlerFunc(wrong)))
	mux.Handle("/admin/limits", page)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	log.Info("open the page", "url", "http://"+listener.Addr().String()+"/admin/limits")
	listening(listener.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if busy {
		sent := make(chan struct{})
		go func() { defer close(sent); traffic(ctx, mux) }()
		defer func() { <-sent }()
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		_ = page.Close() // ends the responses that follow the page
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return server.Shutdown(grace)
	}
}

// readable returns the text of a key for operators. A key of the guard's rule
// address-account consists of an address and an account.
func readable(_, rule, key string) string {
	if rule == "address-account" {
		return strings.Join(keyfuncs.SplitKeys(key), " ")
	}
	return key
}

// operator lets whoever is on this machine change something. A site whose name leads to
// this machine (DNS rebinding) is not the page: Host tells.
func operator(r *http.Request, _ live.Action) (string, error) {
	if to, err := netip.ParseAddrPort(r.Host); (err != nil || !to.Addr().IsLoopback()) && !strings.HasPrefix(r.Host, "localhost:") {
		return "", errors.New("not the address of this machine")
	}
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !from.Addr().IsLoopback() {
		return "", errors.New("not from this machine")
	}
	return "local", nil
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }

// wrong refuses every password.
func wrong(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "wrong username or password", http.StatusUnauthorized)
}
