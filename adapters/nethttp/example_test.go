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

// slowDown writes a denial without a body.
var slowDown = httplimit.OnDenied(func(w http.ResponseWriter, _ *http.Request, _ core.Decision) {
	w.WriteHeader(http.StatusTooManyRequests)
})

func perMinute(quota int64) *core.Limiter {
	return core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(quota)}}}}))
}

func ExamplePerIP() {
	mux := http.NewServeMux()
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	mux.Handle("GET /api", httplimit.PerIP(2, time.Minute)(api))

	for range 3 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api", nil))
		fmt.Println(w.Code, w.Header().Get("Content-Type"))
	}
	// Output:
	// 200 text/plain; charset=utf-8
	// 200 text/plain; charset=utf-8
	// 429 application/problem+json
}

func ExamplePerIP_behindAProxy() {
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	// httptest's requests come from 192.0.2.1, which is the proxy here.
	limited := httplimit.PerIP(1, time.Minute, keyfuncs.Behind("X-Forwarded-For", "192.0.2.0/24"))(api)
	for _, client := range []string{"203.0.113.8", "203.0.113.9", "203.0.113.9"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Forwarded-For", client)
		w := httptest.NewRecorder()
		limited.ServeHTTP(w, r)
		fmt.Println(client, w.Code)
	}
	// Output:
	// 203.0.113.8 200
	// 203.0.113.9 200
	// 203.0.113.9 429
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
	// 200 "ip-1s";r=9;t=1, "ip-1h";r=239;t=3600, "key";r=99;t=60
}

func ExampleOnDenied() {
	page := func(w http.ResponseWriter, _ *http.Request, d core.Decision) {
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprintf(w, "over the limit %q", d.Limit().Name)
	}
	get(httplimit.Middleware(perMinute(0), httplimit.OnDenied(page))(http.NotFoundHandler()), "/")
	// Output: 429 over the limit "ip"
}

func ExampleDecisionFrom() {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := httplimit.DecisionFrom(r.Context())
		fmt.Fprint(w, d.Remaining, " left")
	})
	get(httplimit.Middleware(perMinute(5), httplimit.ExposeDecision())(api), "/")
	// Output: 200 4 left
}

func ExampleExposeDecision() {
	without := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, found := httplimit.DecisionFrom(r.Context())
		fmt.Fprint(w, found)
	})
	get(httplimit.PerIP(5, time.Minute)(without), "/")
	get(httplimit.Middleware(perMinute(5), httplimit.ExposeDecision())(without), "/")
	// Output:
	// 200 false
	// 200 true
}

// A key function reads what the framework knows about the request.
func ExampleRequest() {
	byProtocol := keyfuncs.Func(func(r core.Request) (string, error) {
		h, ok := httplimit.Request(r)
		if !ok {
			return "", core.SkipRule
		}
		return h.Proto, nil
	})
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "protocol", Key: byProtocol, Limits: []core.Limit{core.PerMinute(1)}}}}))
	api := httplimit.Middleware(limiter)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, protocol := range []string{"HTTP/1.1", "HTTP/1.1", "HTTP/1.0"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Proto = protocol
		api.ServeHTTP(w, r)
		fmt.Println(protocol, w.Code)
	}
	// Output:
	// HTTP/1.1 200
	// HTTP/1.1 429
	// HTTP/1.0 200
}

// words is a limiter of 1,000 words an hour. A request reserves 100 of them.
func words() *core.Limiter {
	return core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "words", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(1000)},
		Cost: func(core.Request) (int64, error) { return 100, nil },
	}}}))
}

// jobs is a limiter of one job a minute, for programs that decide in the handler.
func jobs() *core.Limiter {
	return core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "jobs", Limits: []core.Limit{core.PerMinute(1)}}}}))
}

func ExampleSetCost() {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httplimit.SetCost(r.Context(), 500)
		_, _ = fmt.Fprint(w, "five hundred words")
	})
	limited := httplimit.Middleware(words(), slowDown)(answer)
	get(limited, "/")
	get(limited, "/")
	get(limited, "/")
	// Output:
	// 200 five hundred words
	// 200 five hundred words
	// 429
}

func ExampleDeny() {
	limiter := jobs()
	start := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := limiter.Take(r.Context(), 1, core.Hit{Rule: "jobs", Key: r.PathValue("tenant")})
		if err != nil || !d.Allowed {
			httplimit.Deny(w, r, d)
			return
		}
		_, _ = fmt.Fprint(w, "started")
	})
	get(start, "/")
	get(start, "/")
	// Output:
	// 200 started
	// 429 {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"Try again in 60 s.","violated-policies":["jobs"]}
}

func ExamplePathValues() {
	// vars is what a router has instead of http.Request.PathValue, such as gorilla's mux.Vars.
	vars := func(r *http.Request) map[string]string { return map[string]string{"tenant": r.URL.Query().Get("of")} }
	tenants := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "tenant", Key: keyfuncs.PathValue("tenant"), Limits: []core.Limit{core.PerMinute(1)}}}}))

	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello, ", r.PathValue("tenant")) })
	app := httplimit.PathValues(vars)(httplimit.Middleware(tenants, slowDown)(hello))
	get(app, "/?of=acme")
	get(app, "/?of=other")
	get(app, "/?of=acme")
	// Output:
	// 200 hello, acme
	// 200 hello, other
	// 429
}
