// Command apikeys limits clients by API key, and clients without a valid key by address.
// Look at the last two lines that it prints: made-up keys share the quota of their address.
//
//	go run ./examples/apikeys
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// customers has the API keys that this program has issued, and whose they are.
var customers = map[string]string{"k-7f3a": "acme"}

// customer returns whose API key the request has, "" if it has no valid one.
func customer(r core.Request) string {
	keys := r.HeaderValues("X-Api-Key")
	if len(keys) != 1 {
		return ""
	}
	return customers[keys[0]]
}

var clientIP = keyfuncs.ClientIP()

// address is the key function for requests without a valid API key.
func address(dst []byte, r core.Request) ([]byte, error) {
	if customer(r) != "" {
		return dst, core.SkipRule
	}
	return clientIP(dst, r)
}

func main() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "customer", Key: keyfuncs.User(customer), Limits: []core.Limit{core.PerMinute(4)}},
		{Name: "address", Key: address, Limits: []core.Limit{core.PerMinute(2)}},
	}}))
	app := httplimit.Middleware(limiter)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, key := range []string{"k-7f3a", "", "made up 1", "made up 2"} {
		fmt.Printf("%-9q", key)
		for range 5 {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if key != "" {
				r.Header.Set("X-Api-Key", key)
			}
			w := httptest.NewRecorder()
			app.ServeHTTP(w, r)
			fmt.Print(" ", w.Code)
		}
		fmt.Println()
	}
}
