package rpctest

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

var five = []string{"a", "b", "c", "d", "e"}

func messages(t *testing.T, a Adapter) {
	t.Run("a stream counts once", func(t *testing.T) {
		l := all(t, 3)
		c := limited(t, a, l).Dial(t, direct)
		for i, kind := range []Kind{Up, Both, Down} {
			want(t, count(1, func(int) Reply { return c.Do(within(t), kind, five) }), 0, 1)
			if n := used(t, l); n != int64(i+1) {
				t.Errorf("%s: %d hits are used, want %d", kind, n, i+1)
			}
		}
	})

	t.Run("each message counts", func(t *testing.T) {
		for _, kind := range []Kind{Up, Both} {
			l := all(t, 12)
			c := a.Serve(t, App{Limits: []Limit{{Checker: l, PerMessage: true}}}).Dial(t, direct)
			for _, row := range []struct {
				texts []string
				used  int64
			}{{five, 5}, {five[:1], 6}, {nil, 7}, {five, 12}} {
				r := c.Do(within(t), kind, row.texts)
				if n := used(t, l); n != row.used || r.Code != 0 {
					t.Errorf("%s: after %d messages %d hits are used, want %d; %+v", kind, len(row.texts), n, row.used, r)
				}
			}
			want(t, count(1, func(int) Reply { return c.Do(within(t), kind, five) }), codeResourceExhausted, 1)
		}
	})

	t.Run("other calls count once", func(t *testing.T) {
		l := all(t, 10)
		c := a.Serve(t, App{Limits: []Limit{{Checker: l, PerMessage: true}}}).Dial(t, direct)
		want(t, count(1, func(int) Reply { return c.Do(within(t), Once, five) }), 0, 1)
		want(t, count(1, func(int) Reply { return c.Do(within(t), Down, five) }), 0, 1)
		if n := used(t, l); n != 2 {
			t.Errorf("%d hits are used, want 2", n)
		}
	})

	t.Run("a message that is denied ends the stream", func(t *testing.T) {
		for name, ending := range map[string]func(error) error{
			"returns it": func(err error) error { return err }, "swallows it": func(error) error { return nil },
			"has another": func(error) error { return &Error{codeInternal, "other"} },
		} {
			for _, kind := range []Kind{Up, Both} {
				var received []string
				again := error(nil)
				c := a.Serve(t, App{Limits: []Limit{{Checker: all(t, 3), PerMessage: true}}, Handler: func(c Call) error {
					for {
						text, err := c.Receive()
						if err != nil {
							_, again = c.Receive()
							return ending(err)
						}
						received = append(received, text)
					}
				}}).Dial(t, direct)
				r := c.Do(within(t), kind, five)
				if len(received) != 3 || again == nil || errors.Is(again, io.EOF) {
					t.Errorf("%s, the handler %s: it receives %q, then %v", kind, name, received, again)
				}
				if r.Code != codeResourceExhausted || r.RetryAfter <= 0 || len(r.Violations) != 1 || header(r, "retry-after") == "" {
					t.Errorf("%s, the handler %s: the client gets %+v", kind, name, r)
				}
			}
		}
	})

	// A hook may set a field twice. The handler may have sent the header before.
	t.Run("the fields of a denied message are in the trailer", func(t *testing.T) {
		hooks := hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial {
			return core.Denial{Status: 429, Header: []core.Header{{Name: "X-Why", Value: "a"}, {Name: "x-why", Value: "b"}}}
		}}
		l := hooktest.Limiter(t, core.Config{Hooks: hooks, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(2)}}}})
		c := a.Serve(t, App{Limits: []Limit{{Checker: l, PerMessage: true}}, Handler: func(c Call) error {
			return errors.Join(c.Send("early"), OK(c))
		}}).Dial(t, direct, all(t, 100))
		if r := c.Do(within(t), Both, five); r.Code != codeResourceExhausted || header(r, "x-why") != "a|b" {
			t.Errorf("%+v, x-why: %q", r, header(r, "x-why"))
		}
	})

	t.Run("while the stream goes on", func(t *testing.T) {
		l := all(t, 3)
		echo := func(c Call) error {
			for {
				text, err := c.Receive()
				switch {
				case errors.Is(err, io.EOF):
					return nil
				case err != nil:
					return err
				}
				d, _ := c.Decision()
				if err := c.Send(fmt.Sprint(text, d.Remaining)); err != nil {
					return err
				}
			}
		}
		s := a.Serve(t, App{Limits: []Limit{{Checker: l, PerMessage: true}}, Handler: echo}).Dial(t, direct).Open(within(t))
		for _, want := range []string{"x2", "x1", "x0"} {
			if err := s.Send("x"); err != nil {
				t.Fatal(err)
			}
			if got, end := s.Receive(); got != want {
				t.Fatalf("got %q, %+v, want %q", got, end, want)
			}
		}
		if err := s.Send("x"); err != nil {
			t.Fatal(err)
		}
		if got, end := s.Receive(); end == nil || end.Code != codeResourceExhausted || end.RetryAfter <= 0 {
			t.Errorf("got %q, %+v", got, end)
		}
		s.CloseSend()
	})

	t.Run("the key is in the message", func(t *testing.T) {
		message := func(r core.Request) string {
			text, _ := a.Message(r)
			return text
		}
		key := keyfuncs.Func(func(r core.Request) (string, error) { return message(r), nil })
		settled, texts := make(chan string, 8), []string{"", "a", "b", "a", "b", "c"}
		counts := func(r core.Request, _ core.Outcome) bool {
			settled <- message(r)
			return true
		}
		l := hooktest.Limiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: key, Limits: []core.Limit{core.PerMinute(2)}, Counts: counts}}})
		c := a.Serve(t, App{Limits: []Limit{{Checker: l, PerMessage: true}}}).Dial(t, direct)
		want(t, count(1, func(int) Reply { return c.Do(within(t), Up, texts) }), 0, 1)
		want(t, count(1, func(int) Reply { return c.Do(within(t), Up, []string{"", "b"}) }), codeResourceExhausted, 1)
		for _, text := range texts {
			if got := <-settled; got != text {
				t.Errorf("the outcome of %q is passed on as that of %q", text, got)
			}
		}
	})

	t.Run("outcomes of messages", func(t *testing.T) {
		w := hooktest.Watch(t)
		c := a.Serve(t, App{Limits: []Limit{{Checker: w, PerMessage: true}}, Handler: func(c Call) error { return errors.Join(OK(c), &Error{codePermissionDenied, "no"}) }}).Dial(t, direct)
		for _, kind := range []Kind{Up, Both} {
			_ = c.Do(within(t), kind, five[:3])
			for _, status := range []int{200, 200, 403} {
				if o := w.Next(t); o.Status != status {
					t.Errorf("%s: a message has the outcome %+v, want status %d", kind, o, status)
				}
			}
		}
		if n := used(t, w.Limiter); n != 0 || len(w.Outcomes) != 0 {
			t.Errorf("%d hits are left after all were given back, and %d more outcomes", n, len(w.Outcomes))
		}
	})

	t.Run("costs of messages", func(t *testing.T) {
		l := hooktest.Limiter(t, core.Config{Rules: []core.Rule{{
			Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(100)}, Cost: func(core.Request) (int64, error) { return 10, nil },
		}}})
		c := a.Serve(t, App{Limits: []Limit{{Checker: l, PerMessage: true}}, Handler: func(c Call) error {
			for i := int64(1); ; i++ {
				if _, err := c.Receive(); err != nil {
					return c.Send("ok")
				}
				c.SetCost(i)
			}
		}}).Dial(t, direct)
		want(t, count(1, func(int) Reply { return c.Do(within(t), Up, five[:3]) }), 0, 1)
		if n := used(t, l); n != 1+2+3 {
			t.Errorf("%d hits are used, want 6", n)
		}
	})
}
