package rpctest

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func keys(t *testing.T, a Adapter) {
	t.Run("what a key function sees", func(t *testing.T) {
		for _, kind := range Kinds {
			var got string
			l := hooktest.ByKey(t, keyfuncs.Func(func(r core.Request) (string, error) {
				cookie := fmt.Sprint(r.Cookie("sid")) + fmt.Sprint(r.Cookie("other"))
				_, query := r.Query("q")
				message, _ := a.Message(r)
				_, err := r.Body(10)
				got = fmt.Sprint(r.Method(), r.Path() == kind.Route(), r.EscapedPath() == kind.Route(), r.Route() == kind.Route(), r.HeaderValues("X-KEY"), cookie,
					query, message, r.Value(UserKey{}), err != nil, strings.HasPrefix(r.RemoteAddr(), direct+":"), strings.HasPrefix(strings.Join(r.HeaderValues("Host"), "|"), direct+":"))
				return "", nil
			}), 100)
			c := a.Serve(t, App{User: "ann", Limits: []Limit{{Checker: l}}}).Dial(t, direct)
			want(t, count(1, func(int) Reply {
				return c.Do(within(t), kind, []string{"hello"}, "x-key", "a", "x-key", "b", "cookie", "sid=5")
			}), 0, 1)
			method, message := "POST", "" // a stream is decided on before its messages
			if kind == Once {
				method, message = a.Method, "hello"
			}
			if want := fmt.Sprint(method, true, true, true, []string{"a", "b"}, "5truefalse", false, message, "ann", true, true, true); got != want {
				t.Errorf("%s: the key function sees %s, want %s", kind, got, want)
			}
		}
	})

	for _, row := range []struct {
		name     string
		key      core.KeyFunc
		metadata []string // of another key than without
	}{
		{"metadata", keyfuncs.Header("X-Api-Key"), []string{"x-api-key", "k"}},
		{"a cookie", keyfuncs.Cookie("sid"), []string{"cookie", "a=b; sid=k"}},
		{"the address and metadata", keyfuncs.Join(keyfuncs.ClientIP(), keyfuncs.Header("x-tenant")), []string{"X-Tenant", "k"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, kind := range Kinds {
				c := limited(t, a, hooktest.ByKey(t, row.key, 2)).Dial(t, direct)
				want(t, count(3, func(int) Reply { return c.Do(within(t), kind, []string{""}, row.metadata...) }), 0, 2, codeResourceExhausted, 1)
				want(t, count(3, func(int) Reply { return c.Do(within(t), kind, []string{""}) }), 0, 2, codeResourceExhausted, 1)
			}
		})
	}

	t.Run("the method", func(t *testing.T) {
		c := limited(t, a, hooktest.ByKey(t, keyfuncs.Route(), 1)).Dial(t, direct)
		for _, kind := range Kinds {
			want(t, count(2, func(int) Reply { return c.Do(within(t), kind, []string{""}) }), 0, 1, codeResourceExhausted, 1)
		}
	})

	t.Run("the message", func(t *testing.T) {
		l := hooktest.ByKey(t, keyfuncs.Func(func(r core.Request) (string, error) {
			text, _ := a.Message(r)
			return text, nil
		}), 1)
		c := limited(t, a, l).Dial(t, direct)
		for _, text := range []string{"a", "b"} {
			want(t, count(2, func(int) Reply { return c.Do(within(t), Once, []string{text}) }), 0, 1, codeResourceExhausted, 1)
		}
	})

	t.Run("a hook leaves a call out", func(t *testing.T) {
		hooks := hooktest.Funcs{ShouldLimitFunc: func(r core.Request) bool { return r.Route() != Once.Route() }}
		l := hooktest.Limiter(t, core.Config{Hooks: hooks, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(1)}}}})
		c := limited(t, a, l).Dial(t, direct)
		want(t, count(3, func(int) Reply { return c.Do(within(t), Once, []string{""}) }), 0, 3)
		want(t, count(3, func(int) Reply { return c.Do(within(t), Down, []string{""}) }), 0, 1, codeResourceExhausted, 2)
	})

	t.Run("a field of the body", func(t *testing.T) {
		for _, key := range []core.KeyFunc{keyfuncs.PostField("username"), keyfuncs.PostField("username", keyfuncs.Strict())} {
			var log bytes.Buffer
			l := hooktest.Limiter(t, core.Config{
				Log:   slog.New(slog.NewTextHandler(&log, nil)),
				Rules: []core.Rule{{Name: "r", Key: key, Limits: []core.Limit{core.PerMinute(1)}}},
			})
			c := limited(t, a, l).Dial(t, direct)
			for _, kind := range Kinds {
				r := c.Do(within(t), kind, []string{""})
				if r.Code != codeInvalidArgument || !strings.Contains(r.Message, "a remote procedure call has no body") || r.Details != 0 {
					t.Errorf("%s: %+v", kind, r)
				}
			}
			if n := strings.Count(log.String(), "PostField cannot read a call"); n != 1 || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("the log has the line %d times:\n%s", n, &log)
			}
		}
	})
}
