package rpctest

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// inFlight makes a limiter of n calls at a time.
func inFlight(n int64) *inflight.Limiter {
	return core.Must(inflight.New(inflight.Config{Name: "r", Max: n, Key: keyfuncs.Static("")}))
}

// inTheServer serves handlers that tell when they are entered and left, and wait for a signal or
// for the end of their context.
type inTheServer struct{ entered, leave, left chan struct{} }

func newInTheServer() inTheServer {
	return inTheServer{make(chan struct{}, 20), make(chan struct{}), make(chan struct{}, 20)}
}

func (s inTheServer) handle(c Call) error {
	defer func() { s.left <- struct{}{} }()
	if _, err := c.Receive(); err != nil {
		return err
	}
	s.entered <- struct{}{}
	select {
	case <-s.leave:
		return OK(c)
	case <-c.Context().Done():
		return c.Context().Err()
	}
}

func inFlights(t *testing.T, a Adapter) {
	for _, kind := range Kinds {
		t.Run(string(kind), func(t *testing.T) {
			l, s := inFlight(2), newInTheServer()
			c := a.Serve(t, App{Limits: []Limit{{Checker: l}}, Handler: s.handle}).Dial(t, direct)
			call := func(ctx context.Context) chan Reply {
				done := make(chan Reply, 1)
				go func() { done <- c.Do(ctx, kind, []string{""}) }()
				<-s.entered
				return done
			}
			first := call(within(t))
			ctx, cancel := context.WithCancel(within(t))
			second := call(ctx)
			r := c.Do(within(t), kind, []string{""})
			if r.Code != codeResourceExhausted || len(r.Violations) != 1 || !strings.HasPrefix(r.Violations[0], "rule:r r 2 the limit r allows 2 ") || r.RetryAfter <= 0 {
				t.Errorf("the third call gets %+v", r)
			}
			cancel() // a client that hangs up frees its place
			<-second
			<-s.left
			free(t, l, 1)
			third := call(within(t))
			want(t, count(1, func(int) Reply { return c.Do(within(t), kind, []string{""}) }), codeResourceExhausted, 1)
			close(s.leave)
			want(t, count(2, func(i int) Reply { return <-[]chan Reply{first, third}[i] }), 0, 2)
			free(t, l, 0)
		})
	}

	t.Run("a panic frees the place", func(t *testing.T) {
		l := inFlight(1)
		c := a.Serve(t, App{Recovers: true, Limits: []Limit{{Checker: l}}, Handler: func(Call) error { panic("the handler's") }}).Dial(t, direct)
		want(t, count(8, func(i int) Reply { return c.Do(within(t), Kinds[i%len(Kinds)], []string{""}) }), codeInternal, 8)
		free(t, l, 0)
	})

	t.Run("a stream has a place of one limiter, and its messages count for another", func(t *testing.T) {
		l, s := inFlight(1), newInTheServer()
		c := a.Serve(t, App{Limits: []Limit{{Checker: l}, {Checker: all(t, 7), PerMessage: true}}, Handler: s.handle}).Dial(t, direct)
		first := make(chan Reply, 1)
		go func() { first <- c.Do(within(t), Up, five) }()
		<-s.entered
		want(t, count(1, func(int) Reply { return c.Do(within(t), Up, five) }), codeResourceExhausted, 1)
		close(s.leave)
		want(t, count(1, func(int) Reply { return <-first }), 0, 1)
		<-s.left
		free(t, l, 0)
	})

	t.Run("clients", func(t *testing.T) {
		l, s := inFlight(1), newInTheServer()
		c := a.Serve(t, App{Handler: s.handle}).Dial(t, direct, l)
		for _, kind := range Kinds {
			ctx, cancel := context.WithCancel(within(t))
			done := make(chan Reply, 1)
			go func() { done <- c.Do(ctx, kind, []string{""}) }()
			<-s.entered
			want(t, count(1, func(int) Reply { return c.Do(within(t), kind, []string{""}) }), codeResourceExhausted, 1)
			cancel()
			<-done
			<-s.left
			free(t, l, 0)
		}
	})
}

// free waits until n calls have a place: one is freed when the handler has returned, which its
// client need not notice.
func free(t *testing.T, l *inflight.Limiter, held int64) {
	t.Helper()
	for ctx := within(t); l.Held() != held; runtime.Gosched() {
		if ctx.Err() != nil {
			t.Fatalf("%d calls have a place, want %d", l.Held(), held)
		}
	}
}
