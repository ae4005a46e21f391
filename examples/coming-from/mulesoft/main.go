// Command mulesoft is the new program for those who come from MuleSoft's rate limiting policy.
//
//	go run ./examples/coming-from/mulesoft
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/policy"
)

const file = `
policies:
  - name: by-identifier
    key: "#[attributes.queryParams['identifier']]"   # keySelector, as it is
    missing: own-bucket                              # requests without it share a counter, as there
    limits:                                          # rateLimits: fixed windows
      - {maximumRequests: 3, timePeriodInMilliseconds: 10000}
      - {maximumRequests: 10, timePeriodInMilliseconds: 3600000}
    headers: x-milliseconds                          # exposeHeaders: true
    counting: local                                  # clusterizable: false
  - {name: by-client, key: ip, limits: 100/h, counting: local}
`

func main() {
	set, err := policy.Parse("limits.yaml", []byte(file))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	app := httplimit.Middleware(set)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, target := range []string{"/?identifier=a", "/?identifier=a", "/?identifier=a", "/?identifier=a", "/?identifier=A", "/"} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		fmt.Println(target, w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
}
