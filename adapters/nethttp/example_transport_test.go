package httplimit_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
)

// fetch sends a request and prints the status, or why it was not sent.
func fetch(client *http.Client, url string) {
	resp, err := client.Get(url)
	var denied *httplimit.DeniedError
	switch {
	case errors.As(err, &denied):
		fmt.Println("denied by the limiter:", !denied.Held, "by the host:", denied.Held)
	case err != nil:
		fmt.Println(err)
	default:
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
}

func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	limiter := core.Must(core.New(core.Config{
		Name: "outgoing",
		// MaxWait: 2 * time.Second would make a request wait for its turn.
		Rules: []core.Rule{{Name: "host", Key: httplimit.TargetHost, Limits: []core.Limit{core.PerMinute(2), core.InFlight(10)}}},
	}))
	client := &http.Client{Transport: httplimit.Transport(limiter, http.DefaultTransport)}
	for range 3 {
		fetch(client, server.URL)
	}
	// Output:
	// 200
	// 200
	// denied by the limiter: true by the host: false
}

func perHost(quota int64) *core.Limiter {
	return core.Must(core.New(core.Config{
		Rules: []core.Rule{{Name: "host", Key: httplimit.TargetHost, Limits: []core.Limit{core.PerMinute(quota)}}},
	}))
}

func ExampleTargetHost() {
	one := httptest.NewServer(http.NotFoundHandler())
	defer one.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	client := &http.Client{Transport: httplimit.Transport(perHost(1), nil)}
	fetch(client, one.URL)
	fetch(client, one.URL)
	fetch(client, other.URL)
	// Output:
	// 404
	// denied by the limiter: true by the host: false
	// 404
}

func busy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "3600")
	w.WriteHeader(http.StatusTooManyRequests)
}

func ExampleObeyRetryAfter() {
	server := httptest.NewServer(http.HandlerFunc(busy))
	defer server.Close()
	client := &http.Client{Transport: httplimit.Transport(perHost(100), nil, httplimit.ObeyRetryAfter(time.Minute))}
	fetch(client, server.URL)
	fetch(client, server.URL)
	// Output:
	// 429
	// denied by the limiter: false by the host: true
}

func ExampleMaxHold() {
	server := httptest.NewServer(http.HandlerFunc(busy))
	defer server.Close()
	client := &http.Client{Transport: httplimit.Transport(perHost(100), nil,
		httplimit.ObeyRetryAfter(time.Minute), httplimit.MaxHold(2*time.Second))} // a pause of up to two seconds is waited for
	fetch(client, server.URL)
	fetch(client, server.URL)
	// Output:
	// 429
	// denied by the limiter: false by the host: true
}
