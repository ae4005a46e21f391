package httpclient_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/httpclient"
)

// fetch sends a request and prints the status, or why it was not sent.
func fetch(client *http.Client, url string) {
	resp, err := client.Get(url)
	var denied *httpclient.DeniedError
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

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	limiter := core.Must(core.New(core.Config{
		Name: "outgoing",
		// MaxWait: 2 * time.Second would make a request wait for its turn.
		Rules: []core.Rule{{Name: "host", Key: httpclient.Host, Limits: []core.Limit{core.PerMinute(2)}}},
	}))
	client := &http.Client{Transport: core.Must(httpclient.New(httpclient.Config{Limiter: limiter}))}
	for range 3 {
		fetch(client, server.URL)
	}
	// Output:
	// 200
	// 200
	// denied by the limiter: true by the host: false
}

func ExampleHost() {
	limiter := core.Must(core.New(core.Config{
		Rules: []core.Rule{{Name: "host", Key: httpclient.Host, Limits: []core.Limit{core.PerMinute(1)}}},
	}))
	one := httptest.NewServer(http.NotFoundHandler())
	defer one.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	client := &http.Client{Transport: core.Must(httpclient.New(httpclient.Config{Limiter: limiter}))}
	fetch(client, one.URL)
	fetch(client, one.URL)
	fetch(client, other.URL)
	// Output:
	// 404
	// denied by the limiter: true by the host: false
	// 404
}

// A host asks for a pause of an hour, which is too long to be waited for.
func ExampleConfig() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	limiter := core.Must(core.New(core.Config{
		Rules: []core.Rule{{Name: "host", Key: httpclient.Host, Limits: []core.Limit{core.PerMinute(100)}}},
	}))
	client := &http.Client{Transport: core.Must(httpclient.New(httpclient.Config{
		Limiter:  limiter,
		MaxPause: 10 * time.Minute, // a longer Retry-After counts as ten minutes
		MaxHold:  2 * time.Second,  // a pause of up to two seconds is waited for
	}))}
	fetch(client, server.URL)
	fetch(client, server.URL)
	// Output:
	// 429
	// denied by the limiter: false by the host: true
}
