package compat

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/policy"
)

// A middleware of chi may have a request routed by another path than its own.
// The policies of one route still see which route it is.
func TestAPathThatAMiddlewareReplacesIsCountedForItsRoute(t *testing.T) {
	for _, target := range []string{"/login", "/login.json", "/login.x"} {
		set, err := policy.Parse("f", []byte(`policies: [{name: login, limits: 0/h, match: {paths: [/login]}}]`))
		if err != nil {
			t.Fatal(err)
		}
		r := chi.NewRouter()
		r.Use(middleware.URLFormat)
		limited := r.With(httplimit.Middleware(set))
		limited.HandleFunc("/login", func(http.ResponseWriter, *http.Request) {})
		limited.HandleFunc("/other", func(http.ResponseWriter, *http.Request) {})
		for path, want := range map[string]int{target: 429, "/other": 200, "/other.json": 200} {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code != want {
				t.Errorf("%s: %d, want %d", path, w.Code, want)
			}
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}
