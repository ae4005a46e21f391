package compat

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/gorilla/mux"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/pathtest"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/policy"
)

// chiSites are applications of chi, with the policies around and in the router.
func chiSites(t testing.TB) (all []pathtest.Site) {
	t.Helper()
	set, dir := pathtest.Policies(t), pathtest.Folder(t)
	for _, where := range []string{"outside", "Use", "With"} {
		r := chi.NewRouter()
		var h http.Handler = r
		var routes chi.Router = r
		switch where {
		case "outside":
			h = httplimit.Middleware(set)(r)
		case "Use":
			r.Use(httplimit.Middleware(set))
		default:
			routes = r.With(httplimit.Middleware(set))
		}
		for _, m := range pathtest.Methods {
			for _, route := range pathtest.Routes {
				routes.MethodFunc(m, pathtest.Braces(route.Route), pathtest.Handler(route.Name))
			}
			routes.MethodFunc(m, "/api", pathtest.Handler("api"))
			routes.MethodFunc(m, "/api/*", pathtest.Handler("api"))
		}
		routes.Handle("/files/*", http.StripPrefix("/files", http.FileServer(http.Dir(dir))))
		all = append(all, pathtest.Site{Name: "chi, " + where, Address: pathtest.Serve(t, h), HTTP2: true})
	}
	return all
}

// Whatever spelling of a path reaches a handler of chi, the handler's policy counts it.
func TestNoSpellingOfAPathGetsAroundItsPolicyInChi(t *testing.T) {
	for _, s := range chiSites(t) {
		pathtest.Compare(t, s, 200)
	}
}

func FuzzChiPaths(f *testing.F) { pathtest.Fuzz(f, chiSites(f)) }

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
