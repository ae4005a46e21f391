// Command headers prints the rate limit headers of each form.
//
//	go run ./examples/headers
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func main() {
	for _, form := range []struct {
		name    string
		headers core.Headers
	}{
		{"HeadersDraft10, the default", core.HeadersDraft10},
		{"HeadersDraft07", core.HeadersDraft07},
		{"HeadersDraft03", core.HeadersDraft03},
		{"HeadersXSeconds", core.HeadersXSeconds},
		{"HeadersXMillis", core.HeadersXMillis},
		{"HeadersXEpoch", core.HeadersXEpoch},
		{"HeadersOff", core.HeadersOff},
	} {
		limiter := core.Must(core.New(core.Config{
			Headers: form.headers,
			Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{
				{Quota: 5, Window: 60 * time.Second, Algorithm: core.FixedWindow},
			}}},
		}))
		w := httptest.NewRecorder()
		httplimit.Middleware(limiter)(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(form.name)
		var lines []string
		for name, values := range w.Header() {
			if strings.Contains(name, "Ratelimit") {
				lines = append(lines, "  "+name+": "+values[0])
			}
		}
		slices.Sort(lines)
		fmt.Print(strings.Join(append(lines, ""), "\n"))
	}
}
