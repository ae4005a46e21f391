package rpctest

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// timeout ends what hangs; nothing is measured by it.
const timeout = 20 * time.Second

// within returns a context for a call that should end by itself.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// Direct and proxied are the local addresses of a client that connects itself, and of one that a
// trusted proxy connects for.
const (
	direct  = "127.0.0.1"
	proxied = "127.0.0.2"
)

// OK receives all texts and sends "ok". It is the handler of an App without one.
func OK(c Call) error {
	for {
		switch _, err := c.Receive(); {
		case errors.Is(err, io.EOF):
			return c.Send("ok")
		case err != nil:
			return err
		}
	}
}

// all makes a limiter of n calls a minute for everybody.
func all(t *testing.T, n int64) *core.Limiter {
	t.Helper()
	return hooktest.ByKey(t, keyfuncs.Static(""), n)
}

// limited serves an app with one limiter.
func limited(t *testing.T, a Adapter, c core.Checker) Server {
	t.Helper()
	return a.Serve(t, App{Limits: []Limit{{Checker: c}}})
}

// count makes n calls and counts their codes.
func count(n int, call func(i int) Reply) map[uint32]int {
	codes := map[uint32]int{}
	for i := range n {
		codes[call(i).Code]++
	}
	return codes
}

// want fails if the codes are not these: code, how often, and so on.
func want(t *testing.T, got map[uint32]int, codes ...int) {
	t.Helper()
	expected := map[uint32]int{}
	for i := 0; i < len(codes); i += 2 {
		expected[uint32(codes[i])] = codes[i+1]
	}
	if !maps.Equal(got, expected) {
		t.Fatalf("codes and how often each came: %v, want %v", got, expected)
	}
}

// header returns the values of a name in a reply, joined.
func header(r Reply, name string) string { return strings.Join(r.Header(name), "|") }

// used returns how many of its hits a limiter with one rule has counted for the key "".
func used(t *testing.T, l *core.Limiter) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), 0, core.Hit{Rule: "r", Key: ""})
	if err != nil {
		t.Fatal(err)
	}
	return d.Limit().Quota - d.Remaining
}
