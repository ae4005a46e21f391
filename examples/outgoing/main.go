// Command outgoing limits the requests that a program sends to another service.
//
//	go run ./examples/outgoing
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
)

func main() {
	api := httptest.NewServer(http.NotFoundHandler()) // somebody else's
	defer api.Close()

	limiter := core.Must(core.New(core.Config{
		MaxWait: 500 * time.Millisecond,
		Rules: []core.Rule{{
			Name: "host", Key: httplimit.TargetHost,
			Limits: []core.Limit{{Quota: 2, Window: time.Minute, Algorithm: core.FixedWindow}, core.InFlight(4)},
		}},
	}))
	client := &http.Client{Transport: httplimit.Transport(limiter, nil,
		httplimit.ObeyRetryAfter(10*time.Minute), // a longer Retry-After counts as ten minutes
		httplimit.MaxHold(2*time.Second))}
	for range 3 {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, api.URL, http.NoBody)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp, err := client.Do(r)
		var denied *httplimit.DeniedError
		if errors.As(err, &denied) {
			fmt.Println("not sent:", denied.Decision.Reason)
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Println("sent:", resp.StatusCode)
	}
}
