// Package requesttest shows tests of package policy a request as an adapter does.
package requesttest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

// See calls look once, with what the adapter for net/http makes of a request.
func See(t testing.TB, r *http.Request, look func(core.Request)) {
	t.Helper()
	limiter := core.Must(core.New(core.Config{
		Rules: []core.Rule{{Limits: []core.Limit{core.PerSecond(1)}}},
		Hooks: hooktest.Funcs{ShouldLimitFunc: func(r core.Request) bool { look(r); return false }},
	}))
	httplimit.Middleware(limiter)(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
}
