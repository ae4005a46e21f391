package adaptertest

import (
	"net/http"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// panics tests hooks and key functions that panic: the framework's recovery answers, and the
// observer counts what was decided.
func panics(t *testing.T, a Adapter) {
	breaks := keyfuncs.Func(func(r core.Request) (string, error) {
		if len(r.HeaderValues("Breaks")) > 0 {
			panic("the key function's")
		}
		return "", nil
	})
	l := hooktest.Limiter(t, core.Config{
		Rules: []core.Rule{{Name: "r", Key: breaks, Limits: []core.Limit{core.PerMinute(2)}}},
		Hooks: hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { panic("the hook's") }},
	})
	app := limited(l)
	app.Outside = []Middleware{Recovery}
	c := direct(t, a.Serve(t, app))
	for i, row := range []struct {
		breaks []string
		want   int
	}{
		{nil, http.StatusOK},
		{[]string{"Breaks", "yes"}, http.StatusInternalServerError},
		{nil, http.StatusOK},
		{nil, http.StatusInternalServerError}, // denied
		{[]string{"Breaks", "yes"}, http.StatusInternalServerError},
		{nil, http.StatusInternalServerError},
	} {
		if r := c.get("/", row.breaks...); r.status != row.want {
			t.Errorf("request %d: status %d, want %d", i, r.status, row.want)
		}
	}
	if n := hooktest.Count(l); n != (hooktest.Numbers{Allowed: 2, Denied: 2}) {
		t.Errorf("of 2 allowed and 2 denied requests, the observer has counted %+v", n)
	}
}
