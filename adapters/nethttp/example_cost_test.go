package httplimit_test

import (
	"fmt"
	"net/http"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

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
	limited := httplimit.Middleware(words(), httplimit.OnDenied(func(w http.ResponseWriter, _ *http.Request, _ core.Decision) {
		w.WriteHeader(http.StatusTooManyRequests)
	}))(answer)
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
