// Command hooks exempts health checks and writes a line for each denied request.
//
//	go run ./examples/hooks
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

type auditHooks struct{ core.DefaultHooks }

// ShouldLimit exempts health checks.
func (h auditHooks) ShouldLimit(r core.Request) bool {
	return r.Path() != "/healthz" && h.DefaultHooks.ShouldLimit(r)
}

// OnDisallowed writes a line for each denied request.
func (h auditHooks) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	fmt.Println("audit:", r.Method(), d.Reason, "rule", d.Rule(), "counter", d.StoredKey())
	return h.DefaultHooks.OnDisallowed(r, d)
}

func main() {
	limiter := core.Must(core.New(core.Config{
		Name:  "api",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(2)}}},
		Hooks: auditHooks{},
	}))
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	app := httplimit.Middleware(limiter)(hello)
	for _, path := range []string{"/", "/", "/", "/healthz"} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(path, w.Code)
	}
}
