// Command waiting lets requests over the limit wait for their turn, and makes a worker wait.
//
//	go run ./examples/waiting
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func main() {
	limiter := core.Must(core.New(core.Config{
		MaxWait: 3 * time.Second, // a request waits at most so long
		Rules: []core.Rule{{
			Name: "ip", Key: keyfuncs.ClientIP(),
			Limits: []core.Limit{{Quota: 3, Window: 2 * time.Second, Algorithm: core.FixedWindow}},
		}},
	}))
	api := httplimit.Middleware(limiter)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

	var mu sync.Mutex
	seen := map[int]int{}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			w := httptest.NewRecorder()
			api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			mu.Lock()
			defer mu.Unlock()
			seen[w.Code]++
		})
	}
	all.Wait()
	fmt.Println("allowed:", seen[http.StatusOK], "denied:", seen[http.StatusTooManyRequests])

	// A worker waits as long as its context allows. If that is not enough, it learns so at once.
	hit := core.Hit{Rule: "ip", Key: "worker"}
	for range 4 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err := limiter.Wait(ctx, 1, hit)
		cancel()
		fmt.Println("worker:", err == nil, errors.Is(err, core.ErrWaitTooLong))
	}
}
