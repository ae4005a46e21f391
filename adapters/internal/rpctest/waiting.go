package rpctest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// oneAtATime makes a limiter of one call at a time, and its observer. The others wait.
func oneAtATime(maxWait time.Duration) (*inflight.Limiter, *hooktest.Counter) {
	counter := new(hooktest.Counter)
	return core.Must(inflight.New(inflight.Config{Name: "r", Max: 1, Key: keyfuncs.Static(""), MaxWait: maxWait, Observer: counter})), counter
}

// inLine waits until n calls wait for their turn.
func inLine(t *testing.T, l *hooktest.Counter, n int) {
	t.Helper()
	for ctx := within(t); l.Read().Waiting != n; {
		if ctx.Err() != nil {
			t.Fatalf("%d calls wait, want %d", l.Read().Waiting, n)
		}
		runtime.Gosched()
	}
}

func waiting(t *testing.T, a Adapter) {
	for _, side := range []string{"server", "client"} {
		// dial puts the limiter on the server or on its client.
		dial := func(t *testing.T, l *inflight.Limiter, h Handler) Client {
			if side == "client" {
				return a.Serve(t, App{Handler: h}).Dial(t, direct, l)
			}
			return a.Serve(t, App{Handler: h, Limits: []Limit{{Checker: l}}}).Dial(t, direct)
		}
		for _, kind := range Kinds {
			t.Run(side+" "+string(kind), func(t *testing.T) { waits(t, dial, kind) })
		}
	}

	t.Run("a window", func(t *testing.T) {
		l, err := core.New(core.Config{MaxWait: timeout, Rules: []core.Rule{{
			Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{{Quota: 1, Window: 100 * time.Millisecond, Algorithm: core.FixedWindow}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		c := a.Serve(t, App{}).Dial(t, direct, l)
		codes := make(chan uint32, len(Kinds))
		for _, kind := range Kinds {
			go func() { codes <- c.Do(within(t), kind, []string{""}).Code }()
		}
		want(t, count(len(Kinds), func(int) Reply { return Reply{Code: <-codes} }), 0, len(Kinds))
	})
}

func waits(t *testing.T, dial func(*testing.T, *inflight.Limiter, Handler) Client, kind Kind) {
	type handled struct {
		text  string
		leave chan struct{}
	}
	entered := make(chan handled, 10)
	l, counter := oneAtATime(timeout)
	c := dial(t, l, func(c Call) error {
		text, err := c.Receive()
		if err != nil {
			return err
		}
		h := handled{text, make(chan struct{})}
		entered <- h
		select {
		case <-h.leave:
			return OK(c)
		case <-c.Context().Done():
			return c.Context().Err()
		}
	})
	call := func(ctx context.Context, text string) chan Reply {
		done := make(chan Reply, 1)
		go func() { done <- c.Do(ctx, kind, []string{text}) }()
		return done
	}
	first := call(within(t), "first")
	running := <-entered

	// First come, first served. A call that is given up is neither sent nor charged.
	var replies []chan Reply
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	for i, text := range []string{"second", "third", "fourth"} {
		of := within(t)
		if text == "third" {
			of = ctx
		}
		replies = append(replies, call(of, text))
		inLine(t, counter, i+1)
	}
	cancel()
	if r := <-replies[1]; r.Code != codeCanceled {
		t.Errorf("the call that is given up gets %+v", r)
	}
	inLine(t, counter, 2)
	short, stop := context.WithTimeout(within(t), 20*time.Millisecond)
	defer stop()
	if r := c.Do(short, kind, []string{"late"}); r.Code != codeDeadlineExceeded && r.Code != codeResourceExhausted {
		t.Errorf("the call whose deadline ends in line gets %+v", r)
	}
	inLine(t, counter, 2)
	close(running.leave)
	if r := <-first; r.Code != 0 {
		t.Errorf("the first call gets %+v", r)
	}
	for i, text := range []string{"second", "fourth"} {
		running = <-entered
		if running.text != text {
			t.Errorf("%q is next, want %q", running.text, text)
		}
		close(running.leave)
		if r := <-replies[2*i]; r.Code != 0 {
			t.Errorf("%q gets %+v", text, r)
		}
	}
	free(t, l, 0)
	if r := c.Do(ctx, kind, []string{"ended"}); r.Code != codeCanceled {
		t.Errorf("the call whose context has ended before gets %+v", r)
	}
	// The call that was given up is counted when its server has noticed.
	for ctx := within(t); counter.Read().Waited < 3 && ctx.Err() == nil; {
		runtime.Gosched()
	}
	if s := counter.Read(); s.Allowed != 3 || s.Waited < 3 {
		t.Errorf("%d calls are allowed, want 3; %d have waited", s.Allowed, s.Waited)
	}
}
