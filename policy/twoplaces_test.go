package policy_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/policy"
)

// Policies that are mounted around the router and on its routes see the route in
// the second place, and count a request once.
func TestPoliciesBeforeAndAfterRouting(t *testing.T) {
	set, err := policy.Parse("f", []byte(`policies: [{name: login, match: {when: 'hasSuffix(route, "/login")'}, limits: 1/h}, {name: all, limits: 9/h}]`))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close() //nolint:errcheck // the test is over
	limit := httplimit.Middleware(set)
	mux := http.NewServeMux()
	mux.Handle("POST /login", limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	app := limit(mux)
	for i, want := range []int{200, 429, 429} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/login", nil))
		if w.Code != want {
			t.Errorf("request %d: %d, want %d", i+1, w.Code, want)
		}
	}
	s := &site{t: t, set: set}
	if got := s.used("all", 9); got != 3 {
		t.Errorf("the policy for all requests has counted %d, want 3", got)
	}
}
