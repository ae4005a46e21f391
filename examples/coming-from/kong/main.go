// Command kong is the new program for those who come from Kong's rate limiting plugins.
//
//	go run ./examples/coming-from/kong
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

const file = `
name: shop                                  # namespace
store:
  synced:                                   # strategy: redis
    redis: {address: "127.0.0.1:6379"}
    interval: 100ms                         # sync_rate: 0.1
policies:
  - name: by-user
    key: user                               # identifier: consumer
    fallback: ip
    limits: 3/d sliding_window aligned      # limit: [3], window_size: [86400], window_type: sliding
    headers: x-seconds                      # hide_client_headers: false
`

type userKey struct{}

// currentUser returns the user that authentication has found, "" if there is none.
func currentUser(r core.Request) string { user, _ := r.Value(userKey{}).(string); return user }

func main() {
	set, err := policy.Parse("limits.yaml", []byte(file), policy.WithUser(currentUser))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	app := httplimit.Middleware(set)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, user := range []string{"ann", "ann", "ann", "ann", "bob", ""} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r = r.WithContext(context.WithValue(r.Context(), userKey{}, user)) // as authentication does
		w := httptest.NewRecorder()
		app.ServeHTTP(w, r)
		fmt.Printf("%-3s %d %s\n", user, w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
}
