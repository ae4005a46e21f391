package policy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/policy"
)

// A test of the limits in a file does not wait for the turn of its requests.
func ExampleWithoutWaiting() {
	set, err := policy.Parse("limits.yaml", []byte("policies: [{name: api, limits: 2/m, wait: 30s}]"), policy.WithoutWaiting())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = set.Close() }()
	app := httplimit.Middleware(set)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 3 {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 200
	// 429
}
