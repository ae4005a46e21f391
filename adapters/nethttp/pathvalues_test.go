package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// tenants is a limiter of one request a minute for each tenant.
func tenants() *core.Limiter {
	return core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "tenant", Key: keyfuncs.PathValue("tenant"), Limits: []core.Limit{core.PerMinute(1)}}}}))
}

func ExamplePathValues() {
	// vars is what a router has instead of http.Request.PathValue, such as gorilla's mux.Vars.
	vars := func(r *http.Request) map[string]string { return map[string]string{"tenant": r.URL.Query().Get("of")} }

	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "hello, ", r.PathValue("tenant"))
	})
	app := httplimit.PathValues(vars)(httplimit.Middleware(tenants())(hello))
	for _, target := range []string{"/?of=acme", "/?of=other", "/?of=acme"} {
		rec := httptest.NewRecorder()
		app.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, target, nil))
		if rec.Code != http.StatusOK {
			rec.Body.Reset()
		}
		fmt.Println(rec.Code, rec.Body)
	}
	// Output:
	// 200 hello, acme
	// 200 hello, other
	// 429
}

func TestPathValuesPanicsWithoutAFunction(t *testing.T) {
	defer func() {
		const want = "httplimit: PathValues: vars is nil: pass a function such as gorilla's mux.Vars"
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("panics with %s", got)
		}
	}()
	httplimit.PathValues(nil)
}
