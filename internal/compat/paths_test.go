package compat

import (
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/internal/pathtest"
	"github.com/floodgate-go/floodgate/policy"
)

// chiSites are applications of chi, with the policies around and in the router.
func chiSites(t testing.TB) (all []pathtest.Site) {
	t.Helper()
	set, err := policy.Parse("paths.yaml", []byte(pathtest.File))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := pathtest.Folder(t)
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
		for pattern, name := range map[string]string{
			"/items/{id}": "item", "/items/{id}/parts": "parts", "/leaf/{id}": "leaf", "/a/{x}/b": "deep", "/login": "login", "/my file/x": "spaced", "/api": "api", "/api/*": "api",
		} {
			for _, m := range pathtest.Methods {
				routes.MethodFunc(m, pattern, pathtest.Handler(name))
			}
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

func FuzzChiPaths(f *testing.F) {
	for _, target := range pathtest.Recorded {
		f.Add(target)
	}
	var all []*pathtest.Comparer
	for _, s := range chiSites(f) {
		all = append(all, pathtest.NewComparer(f, s))
	}
	f.Fuzz(func(t *testing.T, target string) {
		for _, c := range all {
			c.Target(t, target)
		}
	})
}
