package rpctest

import (
	"context"
	"testing"
)

// stalled is about clients that stop in the middle of a stream, and hang up in the end. The
// handler is then in Send or in Receive, and its slot comes back.
func stalled(t *testing.T, a Adapter) {
	for name, handler := range map[string]func(c Call) error{
		"a client that reads nothing": func(c Call) error {
			big := string(make([]byte, 1<<16)) // more than the windows of HTTP/2 and of the sockets hold, soon
			for {
				if err := c.Send(big); err != nil {
					return err
				}
			}
		},
		"a client that sends no more": OK,
	} {
		t.Run(name, func(t *testing.T) {
			l, entered := inFlight(1), make(chan struct{}, 1)
			c := a.Serve(t, App{Limits: []Limit{{Checker: l}}, Handler: func(c Call) error {
				if _, err := c.Receive(); err != nil {
					return err
				}
				entered <- struct{}{}
				return handler(c)
			}}).Dial(t, direct)
			for range 3 {
				ctx, cancel := context.WithCancel(within(t))
				s := c.Open(ctx)
				if err := s.Send("first"); err != nil {
					t.Fatal(err)
				}
				select {
				case <-entered:
				case <-ctx.Done():
					t.Fatal("the handler was not called")
				}
				want(t, count(1, func(int) Reply { return c.Do(within(t), Once, []string{""}) }), codeResourceExhausted, 1)
				cancel()
				s.CloseSend()
				free(t, l, 0)
			}
		})
	}
}
