// Command httprate is the new program for those who come from go-chi/httprate.
//
//	go run ./examples/coming-from/httprate
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func main() {
	limiter, err := core.New(core.Config{
		Name: "api",
		Rules: []core.Rule{{
			Name:   "client",
			Key:    keyfuncs.Join(keyfuncs.ClientIP(), keyfuncs.Route()),
			Limits: []core.Limit{core.PerMinute(3)}, // a sliding window, as in httprate
		}},
		Headers: core.HeadersXEpoch, // X-RateLimit-Limit, -Remaining, -Reset as Unix time
	})
	if err != nil {
		log.Fatal(err)
	}
	limited := httplimit.Middleware(limiter)
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	mux := http.NewServeMux()
	mux.Handle("GET /search", limited(handler)) // on the routes: around the mux, there is no route yet
	mux.Handle("GET /export", limited(handler))
	for _, path := range []string{"/search", "/search", "/search", "/search", "/export"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(path, w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
}
