package rpctest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func clients(t *testing.T, a Adapter) {
	t.Run("a denied call sends nothing, and the limiter before is told", func(t *testing.T) {
		server := all(t, 100)
		s := limited(t, a, server)
		for _, kind := range Kinds {
			before := used(t, server)
			outer := hooktest.Watch(t)
			c := s.Dial(t, direct, outer, hooktest.ByKey(t, keyfuncs.Header("x-key"), 2))
			for _, key := range []string{"a", "b"} {
				want(t, count(3, func(int) Reply { return c.Do(within(t), kind, []string{""}, "x-key", key) }), 0, 2, codeResourceExhausted, 1)
			}
			if r := c.Do(within(t), kind, []string{""}, "x-key", "a"); r.RetryAfter <= 0 || len(r.Violations) != 1 {
				t.Errorf("%s: %+v", kind, r)
			}
			for i, status := range []int{200, 200, 429, 200, 200, 429, 429} {
				if o := outer.Next(t); o.Status != status {
					t.Errorf("%s: call %d has the outcome %+v, want status %d", kind, i, o, status)
				}
			}
			if n := used(t, server) - before; n != 4 {
				t.Errorf("%s: the server has got %d calls, want 4", kind, n)
			}
		}
	})

	t.Run("a key of the method", func(t *testing.T) {
		c := a.Serve(t, App{}).Dial(t, direct, hooktest.ByKey(t, keyfuncs.Route(), 1))
		for _, kind := range Kinds {
			want(t, count(2, func(int) Reply { return c.Do(within(t), kind, []string{""}) }), 0, 1, codeResourceExhausted, 1)
		}
	})

	t.Run("a key of the message", func(t *testing.T) {
		c := a.Serve(t, App{}).Dial(t, direct, hooktest.ByKey(t, keyfuncs.Func(func(r core.Request) (string, error) {
			text, _ := a.Message(r)
			return text, nil
		}), 1))
		for _, text := range []string{"a", "b"} {
			want(t, count(2, func(int) Reply { return c.Do(within(t), Once, []string{text}) }), 0, 1, codeResourceExhausted, 1)
		}
	})

	t.Run("one limiter twice counts twice", func(t *testing.T) {
		l := all(t, 8)
		c := a.Serve(t, App{}).Dial(t, direct, l, all(t, 100), l)
		want(t, count(8, func(i int) Reply { return c.Do(within(t), Kinds[i%len(Kinds)], []string{""}) }), 0, 4, codeResourceExhausted, 4)
	})

	t.Run("outcomes", func(t *testing.T) {
		w := hooktest.Watch(t)
		var result error
		c := a.Serve(t, App{Handler: func(c Call) error { return errors.Join(OK(c), result) }}).Dial(t, direct, w)
		for code, status := range statuses {
			if result = nil; code > 0 {
				result = &Error{uint32(code), "the handler's"}
			}
			for _, kind := range Kinds {
				_ = c.Do(within(t), kind, []string{""})
				if o := w.Next(t); o.Status != status || a.Code(o) != uint32(code) {
					t.Errorf("%s: code %d has the outcome %+v, want status %d", kind, code, o, status)
				}
			}
		}
	})

	t.Run("a stream that the program gives up", func(t *testing.T) {
		w := hooktest.Watch(t)
		c := a.Serve(t, App{Handler: func(c Call) error {
			<-c.Context().Done()
			return nil
		}}).Dial(t, direct, w)
		ctx, cancel := context.WithCancel(within(t))
		s := c.Open(ctx)
		if err := s.Send("x"); err != nil {
			t.Fatal(err)
		}
		cancel()
		if o := w.Next(t); !o.Canceled || o.Status != core.StatusCanceled {
			t.Errorf("the outcome is %+v", o)
		}
		if _, end := s.Receive(); end == nil || end.Code != codeCanceled {
			t.Errorf("the client gets %+v", end)
		}
		s.CloseSend()
		select {
		case o := <-w.Outcomes:
			t.Errorf("a second outcome: %+v", o)
		case <-time.After(time.Millisecond):
		}
	})

	t.Run("a denied stream", func(t *testing.T) {
		c := a.Serve(t, App{}).Dial(t, direct, all(t, 0))
		s := c.Open(within(t))
		sent := s.Send("x")
		text, end := s.Receive()
		if end == nil || end.Code != codeResourceExhausted || text != "" || errors.Is(sent, io.EOF) {
			t.Errorf("sending: %v; got %q, %+v", sent, text, end)
		}
		s.CloseSend()
	})

	t.Run("a server's limiter and a client's are two", func(t *testing.T) {
		outer, inner := all(t, 100), all(t, 100)
		both := all(t, 100) // on the server and on its client: the calls are others
		behind := a.Serve(t, App{}).Dial(t, direct, inner, both)
		c := a.Serve(t, App{Limits: []Limit{{Checker: outer}, {Checker: both}}, Handler: func(c Call) error {
			for range 3 {
				if r := behind.Do(c.Context(), Once, []string{""}); r.Code != 0 {
					return &Error{codeInternal, fmt.Sprint(r)}
				}
			}
			return OK(c)
		}}).Dial(t, direct)
		want(t, count(4, func(i int) Reply { return c.Do(within(t), Kinds[i], []string{""}) }), 0, 4)
		if o, i, b := used(t, outer), used(t, inner), used(t, both); o != 4 || i != 12 || b != 16 {
			t.Errorf("the server's limiter counts %d, the client's %d, the one of both %d; want 4, 12 and 16", o, i, b)
		}
	})
}
