// Command quickstart limits one route of a net/http server: 5 requests in 10 seconds
// for each client address.
//
//	go run ./examples/quickstart
//	for i in 1 2 3 4 5 6; do curl -i http://127.0.0.1:8080/api; done
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
)

func main() {
	mux := http.NewServeMux()
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	mux.Handle("GET /api", httplimit.PerIP(5, 10*time.Second)(api)) // 5 requests in 10 seconds for each address

	server := &http.Server{Addr: "127.0.0.1:8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}
