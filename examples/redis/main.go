// Command redis shows two instances of an application behind one limit. Look at the number
// that is left after each request: both instances count in one Redis.
//
//	go run ./examples/redis -redis redis://127.0.0.1:6379/0
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func main() {
	url := flag.String("redis", "redis://127.0.0.1:6379/0", "URL of the Redis that counts")
	timeout := flag.Duration("timeout", 2*time.Second, "how long it may take to answer")
	flag.Parse()
	if err := run(context.Background(), *url, *timeout, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run starts two instances and asks them in turn.
func run(ctx context.Context, url string, timeout time.Duration, out io.Writer) (err error) {
	var instances [2]*instance
	for i := range instances {
		if instances[i], err = start(ctx, url, timeout); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, instances[i].stop()) }()
	}
	for n := range 8 {
		i := n % len(instances)
		status, left, err := instances[i].get(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "request %d to instance %d: %s, %s\n", n+1, i+1, status, left)
	}
	return nil
}

// instance is what would be a process of its own.
type instance struct {
	url    string
	server *http.Server
	close  func() error
}

func start(ctx context.Context, url string, timeout time.Duration) (*instance, error) {
	client, err := redisstore.NewClient(url)
	if err != nil {
		return nil, err
	}
	// This process is both instances; an application is one and leaves that out.
	shared := redisstore.New(client, redisstore.Timeout(timeout), redisstore.AnotherInstance())
	if err := shared.Ping(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("this example needs Redis: %w", err), client.Close())
	}
	// Should Redis go away, each of the two allows its share.
	store, err := resilient.New(shared, resilient.Config{Instances: 2})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	closeAll := func() error { return errors.Join(store.Close(), client.Close()) }
	limiter, err := core.New(core.Config{
		Name:    "example-redis",
		Rules:   []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(5)}}},
		Store:   store,
		Headers: core.HeadersDraft03,
	})
	if err != nil {
		return nil, errors.Join(err, closeAll())
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, closeAll())
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	server := &http.Server{Handler: httplimit.Middleware(limiter)(hello), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with stop
	return &instance{"http://" + listener.Addr().String(), server, closeAll}, nil
}

func (i *instance) get(ctx context.Context) (status, left string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, i.url, nil)
	if err != nil {
		return "", "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close() //nolint:errcheck // only the head counts
	return resp.Status, resp.Header.Get("RateLimit-Remaining") + " left", nil
}

func (i *instance) stop() error { return errors.Join(i.server.Close(), i.close()) }
