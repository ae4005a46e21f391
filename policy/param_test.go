package policy_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/policy"
)

// A key by a parameter of the route is the parameter where the policies are mounted after
// routing. Before it, the value is empty, which is said in the log once, whatever reads it.
func TestAParameterOfTheRoute(t *testing.T) {
	const file = `
policies:
  - {name: tenants, key: 'param["tenant"]', limits: 1/h}
  - {name: pairs, key: 'param["tenant"] + "/" + method', limits: 9/h}
  - {name: root, match: {when: 'param["tenant"] == "root"'}, limits: 0/h}
`
	for _, routed := range []bool{true, false} {
		var log bytes.Buffer
		set, err := policy.Parse("f", []byte(file), policy.Log(slog.New(slog.NewTextHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		var app http.Handler
		mux := http.NewServeMux()
		handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		if routed {
			mux.Handle("/t/{tenant}/x", httplimit.Middleware(set)(handler))
			app = mux
		} else {
			mux.Handle("/t/{tenant}/x", handler)
			app = httplimit.Middleware(set)(mux)
		}
		codes := []int{}
		for _, path := range []string{"/t/a/x", "/t/a/x", "/t/b/x", "/t/root/x"} {
			w := httptest.NewRecorder()
			app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			codes = append(codes, w.Code)
		}
		want, said := [4]int{200, 429, 200, 429}, 0
		if !routed {
			want, said = [4]int{200, 429, 429, 429}, 1
		}
		if [4]int(codes) != want || strings.Count(log.String(), "PathValue finds no value") != said {
			t.Errorf("after routing %t: %v, want %v; the log has\n%s", routed, codes, want, log.String())
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}
