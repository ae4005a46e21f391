package compat

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// A parameter of the path is a key in every router: in chi without anything else, in
// gorilla/mux with PathValues.
func TestPathValuesOfRouters(t *testing.T) {
	ok := func(http.ResponseWriter, *http.Request) {}
	for name, build := range map[string]func(limited func(http.Handler) http.Handler) http.Handler{
		"http.ServeMux": func(limited func(http.Handler) http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/tenants/{tenant}/items", limited(http.HandlerFunc(ok)))
			return m
		},
		"chi, With": func(limited func(http.Handler) http.Handler) http.Handler {
			r := chi.NewRouter()
			r.With(limited).HandleFunc("/tenants/{tenant}/items", ok)
			return r
		},
		"chi, Group": func(limited func(http.Handler) http.Handler) http.Handler {
			r := chi.NewRouter()
			r.Group(func(r chi.Router) {
				r.Use(limited)
				r.HandleFunc("/tenants/{tenant}/items", ok)
			})
			return r
		},
		"chi, Use below the parameter": func(limited func(http.Handler) http.Handler) http.Handler {
			r := chi.NewRouter()
			r.Route("/tenants/{tenant}", func(r chi.Router) {
				r.Use(limited)
				r.HandleFunc("/items", ok)
			})
			return r
		},
		"gorilla/mux": func(limited func(http.Handler) http.Handler) http.Handler {
			r := mux.NewRouter()
			r.Use(httplimit.PathValues(mux.Vars), limited)
			r.HandleFunc("/tenants/{tenant}/items", ok)
			return r
		},
	} {
		l := core.Must(core.New(core.Config{Name: "tenants", Rules: []core.Rule{{
			Name: "tenant", Key: keyfuncs.PathValue("tenant"), Limits: []core.Limit{core.PerHour(2)},
		}}}))
		app := build(httplimit.Middleware(l))
		for _, tenant := range []string{"a", "b"} {
			for i, want := range []int{200, 200, 429} {
				w := httptest.NewRecorder()
				app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/tenants/"+tenant+"/items", nil))
				if w.Code != want {
					t.Errorf("%s, tenant %s, request %d: %d, want %d", name, tenant, i+1, w.Code, want)
				}
			}
		}
	}
}
