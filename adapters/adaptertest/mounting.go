package adaptertest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func mounting(t *testing.T, a Adapter) {
	t.Run("a limiter on a group and on a route of the group counts twice", func(t *testing.T) {
		l := Limit{Checker: hooktest.ByKey(t, keyfuncs.ClientIP(), 5)}
		c := direct(t, a.Serve(t, App{
			Group:  "/group",
			Limits: []Limit{l},
			Routes: []Route{{Method: http.MethodGet, Pattern: "/a", Limits: []Limit{l}, Handler: ok}},
		}))
		want(t, count(4, func(int) response { return c.get("/group/a") }), 200, 2, 429, 2)
	})

	t.Run("one limiter on several routes counts them together", func(t *testing.T) {
		l := Limit{Checker: hooktest.ByKey(t, keyfuncs.ClientIP(), 3)}
		c := direct(t, a.Serve(t, App{Routes: []Route{
			{Method: http.MethodGet, Pattern: "/a", Limits: []Limit{l}, Handler: ok},
			{Method: http.MethodGet, Pattern: "/b", Limits: []Limit{l}, Handler: ok},
		}}))
		want(t, count(6, func(i int) response { return c.get([]string{"/a", "/b"}[i%2]) }), 200, 3, 429, 3)
	})

	t.Run("what is nil or invalid panics", func(t *testing.T) {
		for what, mount := range map[string]func(){
			"the checker is nil":                 func() { a.Mount(nil, 0) },
			"the checker is nil (*core.Limiter)": func() { a.Mount((*core.Limiter)(nil), 0) },
			"an option is nil: write one such as " + a.Name + ".OnDenied(f), or none": func() { a.Mount(hooktest.ByKey(t, keyfuncs.Static(""), 1), 1) },
			"": func() { a.PerIP(t, 1, 0) }, // core says what is wrong
		} {
			func() {
				defer func() {
					if err, ok := recover().(error); !ok || what != "" && !strings.HasPrefix(err.Error(), a.Name+": "+what) {
						t.Errorf("panics with %v, want %s", err, what)
					}
				}()
				mount()
			}()
		}
	})
}
