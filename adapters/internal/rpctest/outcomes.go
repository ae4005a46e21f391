package rpctest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// statuses has the status of an outcome for each code.
var statuses = []int{200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401}

func outcomes(t *testing.T, a Adapter) {
	t.Run("codes", func(t *testing.T) {
		for _, kind := range Kinds {
			w := hooktest.Watch(t)
			var result error
			c := a.Serve(t, App{Limits: []Limit{{Checker: w}}, Handler: func(c Call) error { return errors.Join(OK(c), result) }}).Dial(t, direct)
			for code, status := range statuses {
				if result = nil; code > 0 {
					result = &Error{uint32(code), "the handler's"}
				}
				r := c.Do(within(t), kind, []string{""})
				o := w.Next(t)
				if r.Code != uint32(code) || o.Status != status || o.Canceled != (code == codeCanceled) || o.Panicked || a.Code(o) != uint32(code) {
					t.Errorf("%s: the client gets code %d, the outcome is %+v with code %d, want %d and status %d", kind, r.Code, o, a.Code(o), code, status)
				}
			}
			for _, row := range []struct {
				err    error
				status int
			}{{errPlain, 500}, {context.Canceled, 499}, {fmt.Errorf("%w: of a query", context.DeadlineExceeded), 499}} {
				result = row.err
				r := c.Do(within(t), kind, []string{""})
				if o := w.Next(t); r.Code == 0 || o.Status != row.status || o.Canceled != (row.status == 499) {
					t.Errorf("%s: %v: the outcome is %+v, want status %d", kind, row.err, o, row.status)
				}
			}
			if n := used(t, w.Limiter); n != 0 {
				t.Errorf("%s: %d hits are left after all were given back", kind, n)
			}
		}
	})

	t.Run("failures only", func(t *testing.T) {
		failed := func(_ core.Request, o core.Outcome) bool { return a.Code(o) != 0 }
		l := hooktest.Limiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(3)}, Counts: failed}}})
		var result error
		c := a.Serve(t, App{Limits: []Limit{{Checker: l}}, Handler: func(c Call) error { return errors.Join(OK(c), result) }}).Dial(t, direct)
		call := func(i int) Reply { return c.Do(within(t), Kinds[i%len(Kinds)], []string{""}) }
		want(t, count(8, call), 0, 8)
		result = &Error{16, "wrong password"}
		want(t, count(8, call), 16, 3, codeResourceExhausted, 5)
	})

}

func hangingUp(t *testing.T, a Adapter) {
	for _, kind := range Kinds {
		t.Run(string(kind), func(t *testing.T) {
			w := hooktest.Watch(t)
			entered := make(chan struct{})
			c := a.Serve(t, App{Limits: []Limit{{Checker: w}}, Handler: func(c Call) error {
				entered <- struct{}{}
				<-c.Context().Done()
				return nil // as a handler that has not noticed
			}}).Dial(t, direct)
			ctx, cancel := context.WithCancel(within(t))
			done := make(chan Reply)
			go func() { done <- c.Do(ctx, kind, []string{""}) }()
			<-entered
			cancel()
			if r := <-done; r.Code != codeCanceled {
				t.Errorf("the client sees %+v", r)
			}
			if o := w.Next(t); !o.Canceled || o.Status != core.StatusCanceled || a.Code(o) != codeCanceled {
				t.Errorf("the outcome is %+v", o)
			}
		})
	}

	t.Run("a guess without its answer stays counted", func(t *testing.T) {
		wrong := func(_ core.Request, o core.Outcome) bool { return o.Status != 200 }
		l := hooktest.Limiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(3)}, Counts: wrong}}})
		entered, left := make(chan struct{}), make(chan struct{}, 10)
		c := a.Serve(t, App{Limits: []Limit{{Checker: l}}, Handler: func(c Call) error {
			defer func() { left <- struct{}{} }()
			entered <- struct{}{}
			<-c.Context().Done()
			return nil
		}}).Dial(t, direct)
		for i := range 3 {
			ctx, cancel := context.WithCancel(within(t))
			done := make(chan Reply)
			go func() { done <- c.Do(ctx, Kinds[i], []string{""}) }()
			<-entered
			cancel()
			<-done
			<-left
		}
		want(t, count(1, func(int) Reply { return c.Do(within(t), Once, []string{""}) }), codeResourceExhausted, 1)
	})

	t.Run("a deadline", func(t *testing.T) {
		w := hooktest.Watch(t)
		c := a.Serve(t, App{Limits: []Limit{{Checker: w}}, Handler: func(c Call) error {
			<-c.Context().Done()
			return c.Context().Err()
		}}).Dial(t, direct)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var calls sync.WaitGroup
		for _, kind := range Kinds {
			calls.Go(func() {
				if r := c.Do(ctx, kind, []string{""}); r.Code == 0 {
					t.Errorf("%s: the client sees %+v", kind, r)
				}
			})
		}
		calls.Wait()
		for range Kinds {
			if o := w.Next(t); !o.Canceled || o.Status != core.StatusCanceled {
				t.Errorf("the outcome is %+v", o)
			}
		}
	})
}

func panics(t *testing.T, a Adapter) {
	w := hooktest.Watch(t)
	c := a.Serve(t, App{Recovers: true, Limits: []Limit{{Checker: w}}, Handler: func(c Call) error {
		if _, err := c.Receive(); err != nil {
			return err
		}
		panic("the handler's")
	}}).Dial(t, direct)
	for _, kind := range Kinds {
		r := c.Do(within(t), kind, []string{""})
		if o := w.Next(t); r.Code != codeInternal || !o.Panicked || o.Status != 500 || a.Code(o) != codeInternal {
			t.Errorf("%s: the client gets %+v, the outcome is %+v", kind, r, o)
		}
	}

	l := all(t, 2)
	c = a.Serve(t, App{Recovers: true, Limits: []Limit{{Checker: l}}, Handler: func(Call) error { panic("the handler's") }}).Dial(t, direct)
	want(t, count(3, func(i int) Reply { return c.Do(within(t), Kinds[i], []string{""}) }), codeInternal, 2, codeResourceExhausted, 1)

	key := keyfuncs.Func(func(core.Request) (string, error) { panic("the key function's") })
	panicking := hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { panic("the hook's") }}
	for _, row := range []struct {
		rule    core.Rule
		decided int64 // what the observer sees of 4 calls: a decision was made before the hook panics, and none if the key function does
	}{
		{core.Rule{Key: key, Limits: []core.Limit{core.PerMinute(2)}}, 0},
		{core.Rule{Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(0)}}, 4},
	} {
		var denied, others atomic.Int64
		l := hooktest.Limiter(t, core.Config{Rules: []core.Rule{row.rule}, Hooks: panicking, Observer: observeFunc(func(_ context.Context, d core.Decision, _, _ int) {
			if d.Reason == core.ReasonOverLimit && !d.Allowed {
				denied.Add(1)
			} else {
				others.Add(1)
			}
		})})
		c = a.Serve(t, App{Recovers: true, Limits: []Limit{{Checker: l}}}).Dial(t, direct)
		want(t, count(4, func(i int) Reply { return c.Do(within(t), Kinds[i], []string{""}) }), codeInternal, 4)
		if denied.Load() != row.decided || others.Load() != 0 {
			t.Errorf("of 4 calls, the observer has seen %d denied, want %d, and %d others", denied.Load(), row.decided, others.Load())
		}
	}
}

// observeFunc is an observer of decisions.
type observeFunc func(context.Context, core.Decision, int, int)

func (f observeFunc) Observe(string, []core.Rule) core.ObserverFuncs {
	return core.ObserverFuncs{Decided: f}
}
