// Command policy is a gateway: a reverse proxy whose limits are in a YAML file. Change the
// file while it runs, and look at the log and the headers: the new limits are in force.
//
//	go run ./examples/policy                                    # before a server of its own
//	go run ./examples/policy -upstream http://127.0.0.1:3000
//	go run ./examples/policy -policies limits.yaml -addr :8080
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	policies := flag.String("policies", "examples/policy/limits.yaml", "the policy file")
	upstream := flag.String("upstream", "", "URL of the server behind; empty: one of the gateway's own, which answers with what it was asked")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *policies, *upstream, slog.Default(), func(net.Addr) {}); err != nil {
		slog.Error("the gateway ends", "error", err)
		os.Exit(1) //nolint:gocritic // stop gives back what the process's end does
	}
}

// run serves until ctx ends. listening is called once it does.
func run(ctx context.Context, addr, policies, upstream string, log *slog.Logger, listening func(net.Addr)) (err error) {
	set, err := policy.Watch(ctx, policies, policy.Log(log), policy.OnDisallowed(
		func(r core.Request, d core.Decision, denial core.Denial) core.Denial {
			log.Info("denied", "reason", d.Reason.String(), "rule", d.Rule(), "method", r.Method(), "path", r.Path(), "dry_run", d.DryRun)
			return denial
		}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	target, err := behind(upstream)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	log.Info("listening", "url", "http://"+listener.Addr().String())
	listening(listener.Addr())
	server := &http.Server{Handler: httplimit.Middleware(set)(target), ReadHeaderTimeout: 5 * time.Second}
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

// behind returns what the gateway stands before.
func behind(upstream string) (http.Handler, error) {
	if upstream == "" {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "upstream: %s %q\n", r.Method, r.URL.Path)
		}), nil
	}
	u, err := url.Parse(upstream)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("-upstream: %q: want a URL such as http://127.0.0.1:3000", upstream)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(u)
		r.SetXForwarded()
	}}, nil
}
