// Command plans gives each customer the quota of its plan, and charges what an answer has
// really cost.
//
//	go run ./examples/plans
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// plans has the words a minute of each customer. In a real program, it is a cache of a table.
var plans = map[string]int64{"acme": 30, "globex": core.Unlimited}

func customer(r core.Request) string { return strings.Join(r.HeaderValues("X-Customer"), " ") }

// quota returns the quota of a request for one of the rule's limits.
func quota(r core.Request, l core.Limit) (int64, error) {
	if words, ok := plans[customer(r)]; ok {
		return words, nil
	}
	return l.Quota, nil
}

// reserve is the cost of a request before its answer is known, in words.
func reserve(core.Request) (int64, error) { return 10, nil }

func main() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "words", Key: keyfuncs.User(customer), Limits: []core.Limit{core.PerMinute(20)}, Quota: quota, Cost: reserve,
	}}}))
	answer := httplimit.Middleware(limiter)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		words := strings.Fields("six words are the whole answer")
		for _, word := range words {
			fmt.Fprint(w, word, " ")
		}
		httplimit.SetCost(r.Context(), int64(len(words))) // 4 of the 10 come back
	}))
	for _, name := range []string{"initech", "acme", "globex"} {
		fmt.Printf("%-8s", name)
		for range 6 {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("X-Customer", name)
			w := httptest.NewRecorder()
			answer.ServeHTTP(w, r)
			fmt.Print(w.Code, " ")
		}
		fmt.Println()
	}

	// The same without a request, in a worker for instance.
	ctx, acme := context.Background(), core.Hit{Rule: "words", Key: "acme", Quotas: []int64{1000}}
	d, err := limiter.Take(ctx, 50, acme)
	if err != nil || !d.Allowed {
		fmt.Println(d, err)
		return
	}
	if err := limiter.Adjust(ctx, d, 400); err != nil {
		fmt.Println(err)
	}
	d, _ = limiter.Peek(ctx, 0, acme)
	fmt.Println("acme has", d.Remaining, "words left")

	if err := limiter.Block(ctx, time.Hour, core.Hit{Rule: "words", Key: "globex"}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("globex is allowed:", limiter.Allow(ctx, core.Hit{Rule: "words", Key: "globex"}))
}
