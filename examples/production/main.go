// Command production is what the checklist for production asks for. It needs Redis
// at 127.0.0.1:6379.
//
//	go run ./examples/production
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redis/go-redis/v9"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// limits is what the program closes at its end.
type limits struct {
	limiter *core.Limiter
	close   func() error
}

func newLimits(addr string) (limits, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1})
	shared := redisstore.New(client)
	if err := shared.Ping(ctx); err != nil {
		slog.Warn("Redis does not answer; this process counts for itself until it does", "error", err)
	}
	store, err := resilient.New(shared, resilient.Config{Instances: 4})
	if err != nil {
		return limits{}, errors.Join(err, client.Close())
	}
	closeAll := func() error { return errors.Join(store.Close(), shared.Close(), client.Close()) }
	limiter, err := core.New(core.Config{
		Name:  "checklist",
		Store: store,
		Rules: []core.Rule{{
			Name:   "ip",
			Key:    keyfuncs.ClientIP(keyfuncs.Behind("X-Forwarded-For", "192.0.2.0/24")),
			Limits: []core.Limit{core.PerSecond(10), core.PerHour(1000)},
		}},
	})
	if err != nil {
		return limits{}, errors.Join(err, closeAll())
	}
	return limits{limiter, closeAll}, nil
}

func main() {
	l, err := newLimits("127.0.0.1:6379")
	if err != nil {
		log.Fatal(err)
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	app := httplimit.Middleware(l.limiter)(api)

	// In place of a server: one request through the proxy 192.0.2.1.
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	stats := l.limiter.Stats()
	fmt.Println(w.Code, w.Body, "allowed:", stats.Allowed, "degraded:", stats.Degraded)
	if err := l.close(); err != nil {
		log.Fatal(err)
	}
}
