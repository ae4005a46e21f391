package adaptertest

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// reasons is an observer that counts decisions by their reasons.
type reasons struct {
	mu sync.Mutex
	n  map[core.Reason]int
}

func (o *reasons) Observe(string, []core.Rule) core.ObserverFuncs {
	o.n = map[core.Reason]int{}
	return core.ObserverFuncs{Decided: func(_ context.Context, seen core.Observation) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.n[seen.Reason]++
	}}
}

func (o *reasons) counted() map[core.Reason]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.n)
}

// panics tests hooks and key functions that panic: the framework's recovery answers, and the
// observer counts what was decided.
func panics(t *testing.T, a Adapter) {
	breaks := keyfuncs.Func(func(r core.Request) (string, error) {
		if len(r.HeaderValues("Breaks")) > 0 {
			panic("the key function's")
		}
		return "", nil
	})
	counts := new(reasons)
	l := hooktest.Limiter(t, core.Config{
		Rules:    []core.Rule{{Name: "r", Key: breaks, Limits: []core.Limit{core.PerMinute(2)}}},
		Hooks:    hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { panic("the hook's") }},
		Observer: counts,
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
	if got := counts.counted(); !maps.Equal(got, map[core.Reason]int{core.ReasonWithinLimits: 2, core.ReasonOverLimit: 2}) {
		t.Errorf("of 2 allowed and 2 denied requests, the observer has counted %v", got)
	}
	if s := l.Stats(); s != (core.Stats{Allowed: 2, Denied: 2}) {
		t.Errorf("Stats: %+v", s)
	}
}
