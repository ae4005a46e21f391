// Command policytext limits requests with a policy that it reads from a string.
//
//	go run ./examples/policytext
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/policy"
)

func main() {
	set, err := policy.Parse("limits.yaml", []byte(`
policies:
  - name: by-method
    key: method
    limits: 3/6s
    headers: x-milliseconds
`))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	app := httplimit.Middleware(set)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, method := range []string{"GET", "GET", "GET", "GET", "POST"} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		fmt.Println(method, w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
}
