package rpctest

import (
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func several(t *testing.T, a Adapter) {
	t.Run("one limiter twice counts twice", func(t *testing.T) {
		l := all(t, 6)
		c := a.Serve(t, App{Limits: []Limit{{Checker: l}, {Checker: all(t, 100)}, {Checker: l}}}).Dial(t, direct)
		want(t, count(5, func(i int) Reply { return c.Do(within(t), Kinds[i%len(Kinds)], []string{""}) }), 0, 3, codeResourceExhausted, 2)
	})

	t.Run("the handler reads the decision of the innermost", func(t *testing.T) {
		named := func(name string, n int64) Limit {
			return Limit{Checker: hooktest.Limiter(t, core.Config{Name: name, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(n)}}}})}
		}
		c := a.Serve(t, App{Limits: []Limit{named("outer", 9), named("inner", 5)}, Handler: func(c Call) error {
			d, found := c.Decision()
			if _, err := c.Receive(); err != nil {
				return err
			}
			return c.Send(fmt.Sprint(d.Limiter(), " ", d.Remaining, " ", found))
		}}).Dial(t, direct)
		for i, kind := range Kinds {
			r := c.Do(within(t), kind, []string{""})
			if want := fmt.Sprintf("inner %d true", 4-i); len(r.Texts) != 1 || r.Texts[0] != want {
				t.Errorf("%s: the handler reads %q, want %q", kind, r.Texts, want)
			}
			if got, want := header(r, "ratelimit"), fmt.Sprintf(`"r-1m";r=%d;t=60`, 8-i); len(got) <= len(want) {
				t.Errorf("%s: ratelimit: %s, want a line of each limiter", kind, got)
			}
		}
	})

	t.Run("no limiter", func(t *testing.T) {
		c := a.Serve(t, App{Handler: func(c Call) error {
			d, found := c.Decision()
			if found || d.Limiter() != "" || c.SetCost(1) {
				return &Error{codeInternal, "a decision"}
			}
			return OK(c)
		}}).Dial(t, direct)
		want(t, count(4, func(i int) Reply { return c.Do(within(t), Kinds[i], []string{""}) }), 0, 4)
	})

	t.Run("the inner one denies", func(t *testing.T) {
		outer, inner := hooktest.Watch(t), all(t, 0)
		c := a.Serve(t, App{Limits: []Limit{{Checker: outer}, {Checker: inner}}}).Dial(t, direct)
		for _, kind := range Kinds {
			want(t, count(1, func(int) Reply { return c.Do(within(t), kind, []string{""}) }), codeResourceExhausted, 1)
			if o := outer.Next(t); o.Status != 429 {
				t.Errorf("%s: the outer limiter is told %+v", kind, o)
			}
		}
	})
}

func costs(t *testing.T, a Adapter) {
	cost := func(core.Request) (int64, error) { return 10, nil }
	for _, kind := range Kinds {
		config := core.Config{Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(100)}, Cost: cost}}}
		outer, l := hooktest.Limiter(t, config), hooktest.Limiter(t, config)
		var actual int64
		var result error
		c := a.Serve(t, App{Limits: []Limit{{Checker: outer}, {Checker: l}}, Handler: func(c Call) error {
			if !c.SetCost(actual) {
				return &Error{codeInternal, "SetCost concerns nothing"}
			}
			if err := OK(c); err != nil {
				return err
			}
			return result
		}}).Dial(t, direct)
		for _, row := range []struct {
			actual int64
			result error
			used   int64
		}{{25, nil, 25}, {3, nil, 28}, {0, &Error{codeInternal, "no"}, 28}, {90, nil, 118 - 18}} {
			actual, result = row.actual, row.result
			r := c.Do(within(t), kind, []string{""})
			if n, o := used(t, l), used(t, outer); n != row.used || o != row.used || (r.Code == 0) != (row.result == nil) {
				t.Errorf("%s: after an actual cost of %d, %d and %d hits are used, want %d", kind, row.actual, o, n, row.used)
			}
		}
	}
}
