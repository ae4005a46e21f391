package compat

import (
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/internal/pathtest"
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

// Whatever spelling of a path reaches a handler of chi, the handler's policy
// counts it.
func TestNoSpellingOfAPathGetsAroundItsPolicyInChi(t *testing.T) {
	for _, s := range chiSites(t) {
		pathtest.Compare(t, s, 200)
	}
}

func FuzzChiPaths(f *testing.F) { pathtest.Fuzz(f, chiSites(f)) }
