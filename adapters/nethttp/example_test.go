package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// get asks the handler for a path and prints the status.
func get(h http.Handler, path string) {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	fmt.Println(rec.Code, rec.Body)
}

func ExamplePerIP() {
	mux := http.NewServeMux()
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	mux.Handle("GET /api", httplimit.PerIP(2, time.Minute, httplimit.OnDenied(tooMany))(api))

	get(mux, "/api")
	get(mux, "/api")
	get(mux, "/api")
	// Output:
	// 200 hello
	// 200 hello
	// 429 slow down
}

func tooMany(w http.ResponseWriter, _ *http.Request, _ core.Decision) {
	w.WriteHeader(http.StatusTooManyRequests)
	fmt.Fprint(w, "slow down")
}

func ExampleMiddleware() {
	limiter, err := core.New(core.Config{
		Name: "api",
		Rules: []core.Rule{
			{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerSecond(10), core.PerHour(240)}},
			{Name: "key", Key: keyfuncs.Header("X-Api-Key"), Limits: []core.Limit{core.PerMinute(100)}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, w.Header().Get("RateLimit")) })
	get(httplimit.Middleware(limiter)(api), "/")
	// Output:
	// 200 "ip-1s";r=9;t=2, "ip-1h";r=239;t=3601, "key";r=99;t=61
}

func ExampleOnDenied() {
	page := func(w http.ResponseWriter, _ *http.Request, d core.Decision) {
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprintf(w, "over the limit %q", d.Limit.Name)
	}
	get(httplimit.PerIP(0, time.Minute, httplimit.OnDenied(page))(http.NotFoundHandler()), "/")
	// Output: 429 over the limit "ip"
}

func ExampleDecisionFrom() {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := httplimit.DecisionFrom(r.Context())
		fmt.Fprint(w, d.Remaining, " left")
	})
	get(httplimit.PerIP(5, time.Minute, httplimit.ExposeDecision())(api), "/")
	// Output: 200 4 left
}

func ExampleExposeDecision() {
	without := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, found := httplimit.DecisionFrom(r.Context())
		fmt.Fprint(w, found)
	})
	get(httplimit.PerIP(5, time.Minute)(without), "/")
	get(httplimit.PerIP(5, time.Minute, httplimit.ExposeDecision())(without), "/")
	// Output:
	// 200 false
	// 200 true
}
