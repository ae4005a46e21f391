// Command order prints in which order a limiter calls hooks, key functions and
// the handler.
//
//	go run ./examples/order
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func main() {
	limiter := core.Must(core.New(core.Config{
		Rules: []core.Rule{{
			Name: "user",
			Key: keyfuncs.Func(func(r core.Request) (string, error) {
				fmt.Println("  key")
				user, _ := r.Query("user")
				return user, nil
			}),
			Limits: []core.Limit{core.PerMinute(1)},
			Counts: func(core.Request, core.Outcome) bool { fmt.Println("  settle"); return true },
		}},
		Hooks: core.HookFuncs{
			ShouldLimitFunc: func(core.Request) bool { fmt.Println("  ShouldLimit"); return true },
			KeyExtraFunc:    func(core.Request) (string, error) { fmt.Println("  KeyExtra"); return "", nil },
			CostFunc:        func(core.Request) (int64, error) { fmt.Println("  Cost"); return 1, nil },
			OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
				fmt.Println("  OnDisallowed")
				return core.DefaultHooks{}.OnDisallowed(r, d)
			},
		},
	}))
	app := httplimit.Middleware(limiter)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fmt.Println("  handler") }))
	for range 2 {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?user=ann", nil))
		fmt.Println(w.Code)
	}
}
