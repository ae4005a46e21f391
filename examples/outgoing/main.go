// Command outgoing limits the requests that a program sends to another service. Look at
// the third line that it prints: the request waits for its turn.
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

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/httpclient"
)

func main() {
	api := httptest.NewServer(http.NotFoundHandler()) // somebody else's
	defer api.Close()

	limiter := core.Must(core.New(core.Config{
		MaxWait: 10 * time.Second,
		Rules: []core.Rule{{
			Name: "host", Key: httpclient.Host,
			Limits: []core.Limit{{Quota: 2, Window: time.Second, Algorithm: core.SlidingLog}},
		}},
	}))
	client := &http.Client{Transport: core.Must(httpclient.New(httpclient.Config{
		Limiter:  limiter,
		MaxPause: 10 * time.Minute, // a longer Retry-After counts as ten minutes
		MaxHold:  2 * time.Second,  // longest wait for the end of such a pause
	}))}
	began := time.Now()
	for range 3 {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, api.URL, http.NoBody)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp, err := client.Do(r)
		var denied *httpclient.DeniedError
		if errors.As(err, &denied) {
			fmt.Println("not sent:", denied)
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Println("sent after", time.Since(began).Truncate(time.Second), "with the status", resp.StatusCode)
	}
}
