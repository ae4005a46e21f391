// Command ulule-limiter is the new program for those who come from ulule/limiter.
//
//	go run ./examples/coming-from/ulule-limiter
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// exempt takes the place of ExcludedKey: the rule does not apply to the key.
func exempt(f core.KeyFunc, excluded func(key string) bool) core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		key, err := f(dst, r)
		if err == nil && excluded(string(key[len(dst):])) {
			return dst, core.SkipRule
		}
		return key, err
	}
}

func main() {
	limiter, err := core.New(core.Config{
		Name: "api",
		Rules: []core.Rule{{
			Name:   "ip",
			Key:    exempt(keyfuncs.ClientIP(), func(key string) bool { return key == "192.0.2.99" }),
			Limits: []core.Limit{{Quota: 3, Window: time.Minute, Algorithm: core.FixedWindow}},
		}},
		Headers: core.HeadersXEpoch, // X-RateLimit-Limit, -Remaining, -Reset as Unix time
	})
	if err != nil {
		log.Fatal(err)
	}
	app := httplimit.Middleware(limiter)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, client := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.99"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = client + ":5000"
		w := httptest.NewRecorder()
		app.ServeHTTP(w, r)
		fmt.Println(client, w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
}
