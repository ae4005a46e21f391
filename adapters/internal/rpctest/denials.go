package rpctest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func denials(t *testing.T, a Adapter) {
	t.Run("over a limit", func(t *testing.T) {
		l := hooktest.Limiter(t, core.Config{Name: "api", Rules: []core.Rule{
			{Name: "key", Key: keyfuncs.Header("x-key"), Limits: []core.Limit{
				{Name: "burst", Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow},
				{Name: "hourly", Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow},
				{Name: "daily", Quota: 100, Window: 24 * time.Hour},
			}},
		}})
		c := limited(t, a, l).Dial(t, direct)
		for i, kind := range Kinds {
			key := fmt.Sprint("secret-", i)
			want(t, count(1, func(int) Reply { return c.Do(within(t), kind, []string{""}, "x-key", key) }), 0, 1)
			r := c.Do(within(t), kind, []string{""}, "x-key", key)
			violations := []string{"rule:key burst 1 the limit burst allows 1 per 10s", "rule:key hourly 1 the limit hourly allows 1 per 1h"}
			if r.Code != codeResourceExhausted || r.RetryAfter != time.Hour || !slices.Equal(r.Violations, violations) || r.Details != 2 {
				t.Errorf("%s: %+v", kind, r)
			}
			if text := fmt.Sprint(r.Message, r.Violations, header(r, "ratelimit"), header(r, "ratelimit-policy")); strings.Contains(text, "secret") {
				t.Errorf("%s: the denial has the key: %s", kind, text)
			}
			if !strings.HasSuffix(r.Message, "Try again in 3600 s.") {
				t.Errorf("%s: message %q", kind, r.Message)
			}
		}
	})

	t.Run("never", func(t *testing.T) {
		c := limited(t, a, all(t, 0)).Dial(t, direct)
		for _, kind := range Kinds {
			if r := c.Do(within(t), kind, []string{""}); r.Code != codeResourceExhausted || r.RetryAfter != 0 || len(r.Violations) != 1 || header(r, "retry-after") != "" {
				t.Errorf("%s: %+v", kind, r)
			}
		}
	})

	t.Run("a bad request", func(t *testing.T) {
		key := keyfuncs.Func(func(core.Request) (string, error) { return "", &core.BadRequestError{Detail: "the tenant is missing"} })
		c := limited(t, a, hooktest.ByKey(t, key, 1)).Dial(t, direct)
		for _, kind := range Kinds {
			if r := c.Do(within(t), kind, []string{""}); r.Code != codeInvalidArgument || r.Message != "Bad Request: the tenant is missing" || r.Details != 0 {
				t.Errorf("%s: %+v", kind, r)
			}
		}
	})

	for _, row := range []struct {
		name    string
		denial  core.Denial
		code    uint32
		message string
		details int
	}{
		{"a hook forbids", core.Denial{Status: 403, Body: []byte("no bots")}, codePermissionDenied, "no bots", 0},
		{"a hook has a text of its own", core.Denial{Status: 429, Body: []byte(" slow down\n")}, codeResourceExhausted, "slow down", 2},
		{"a hook has JSON of its own", core.Denial{Status: 429, Body: []byte(`{"error":7}`)}, codeResourceExhausted, "the call is over a limit", 2},
		{"a hook has no body", core.Denial{Status: 429}, codeResourceExhausted, "the call is over a limit", 2},
		{"a hook has a long body that is not UTF-8", core.Denial{Status: 429, Body: []byte("\xff" + strings.Repeat("ä", 4000))}, codeResourceExhausted, strings.Repeat("ä", 511), 2},
		{"a hook has long problem details", core.Denial{Status: 429, Body: []byte(`{"title":"t","detail":"` + strings.Repeat("ä", 4000) + `"}`)}, codeResourceExhausted, "t: " + strings.Repeat("ä", 510), 2},
		{"a hook makes a success of it", core.Denial{Status: 200, Body: []byte("fine")}, codeResourceExhausted, "fine", 2},
		{"a hook answers with a status that no code has", core.Denial{Status: 418, Body: []byte("tea")}, codeResourceExhausted, "tea", 2},
		{"a hook sets headers", core.Denial{Status: 429, Body: []byte("x"), Header: []core.Header{
			{Name: "X-Why", Value: "quota"}, {Name: "retry-after", Value: "7"}, {Name: "Content-Type", Value: "text/html"}, {Name: "Grpc-Status", Value: "0"}, {Name: "Connect-X", Value: "0"},
			{Name: "Connection", Value: "close"}, {Name: "X-Line", Value: "a\r\nb"}, {Name: "X Space", Value: "a"}, {Name: "X-Ä", Value: "ä"}, {Name: ":status", Value: "200"},
		}}, codeResourceExhausted, "x", 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			hooks := hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { return row.denial }}
			l := hooktest.Limiter(t, core.Config{Hooks: hooks, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(1)}}}})
			c := limited(t, a, l).Dial(t, direct)
			_ = c.Do(within(t), Once, []string{""})
			for _, kind := range Kinds {
				r := c.Do(within(t), kind, []string{""})
				if r.Code != row.code || r.Message != row.message || r.Details != row.details {
					t.Errorf("%s: %+v", kind, r)
				}
				if len(row.denial.Header) > 0 && (header(r, "x-why") != "quota" || header(r, "retry-after") != "7" || header(r, "x-line") != "" || header(r, "connect-x") != "") {
					t.Errorf("%s: x-why: %q, retry-after: %q", kind, header(r, "x-why"), header(r, "retry-after"))
				}
			}
		})
	}

	t.Run("a function of the application", func(t *testing.T) {
		for _, limit := range []Limit{{Checker: all(t, 0), Denied: "not today"}, {Checker: all(t, 0), DeniedNil: true}} {
			c := a.Serve(t, App{Limits: []Limit{limit}}).Dial(t, direct)
			for _, kind := range Kinds {
				r := c.Do(within(t), kind, []string{""})
				code := uint32(9)
				if limit.DeniedNil {
					code = codeResourceExhausted
				}
				if r.Code != code || !limit.DeniedNil && r.Message != limit.Denied || header(r, "ratelimit-policy") == "" {
					t.Errorf("%s: %+v", kind, r)
				}
			}
		}
	})

	t.Run("a handler denies", func(t *testing.T) {
		var seen string
		hooks := hooktest.Funcs{OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
			seen = fmt.Sprint(r.Method(), r.Path(), r.Route(), r.HeaderValues("x-key"), r.Value(UserKey{}))
			return core.DefaultHooks{}.OnDisallowed(r, d)
		}}
		l := hooktest.Limiter(t, core.Config{Hooks: hooks, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}})
		c := a.Serve(t, App{User: "ann", Handler: func(c Call) error {
			d, err := l.Take(c.Context(), 1, core.Hit{Rule: "r", Key: ""})
			if err != nil {
				return err
			}
			if !d.Allowed {
				return c.Deny(d)
			}
			return OK(c)
		}}).Dial(t, direct)
		want(t, count(1, func(int) Reply { return c.Do(within(t), Once, []string{""}) }), 0, 1)
		for _, kind := range Kinds {
			if r := c.Do(within(t), kind, []string{""}, "x-key", "a"); r.Code != codeResourceExhausted || r.RetryAfter <= 0 || len(r.Violations) != 1 || header(r, "retry-after") == "" {
				t.Errorf("%s: %+v", kind, r)
			}
			method := map[bool]string{true: a.Method, false: "POST"}[kind == Once]
			if seen != fmt.Sprint(method, kind.Route(), kind.Route(), []string{"a"}, "ann") {
				t.Errorf("%s: the hook sees the method, the path, the route and the metadata %q", kind, seen)
			}
		}
	})
}

func fields(t *testing.T, a Adapter) {
	l := hooktest.Limiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{
		{Name: "m", Quota: int64(len(Kinds)) + 1, Window: time.Minute, Algorithm: core.FixedWindow},
	}}}})
	c := a.Serve(t, App{Limits: []Limit{{Checker: l}}, Handler: func(c Call) error {
		if _, err := c.Receive(); err != nil {
			return err
		}
		if d, _ := c.Decision(); d.Remaining == 0 {
			return &Error{codePermissionDenied, "no"}
		}
		return OK(c)
	}}).Dial(t, direct)
	for i, kind := range Kinds {
		r := c.Do(within(t), kind, []string{""})
		if got, want := header(r, "ratelimit"), fmt.Sprintf(`"m";r=%d;t=60`, len(Kinds)-i); r.Code != 0 || got != want || header(r, "ratelimit-policy") != `"m";q=5;w=60` {
			t.Errorf("%s: ratelimit: %q, want %q, policy %q", kind, got, want, header(r, "ratelimit-policy"))
		}
	}
	if r := c.Do(within(t), Once, []string{""}); r.Code != codePermissionDenied || header(r, "ratelimit") != `"m";r=0;t=60` {
		t.Errorf("a call that the handler ends with an error: %+v, ratelimit: %q", r, header(r, "ratelimit"))
	}
	for _, kind := range Kinds {
		r := c.Do(within(t), kind, []string{""})
		if r.Code != codeResourceExhausted || header(r, "ratelimit") != `"m";r=0;t=60` || header(r, "retry-after") != "60" || header(r, "cache-control") != "no-store" {
			t.Errorf("%s: ratelimit: %q, retry-after: %q, %+v", kind, header(r, "ratelimit"), header(r, "retry-after"), r)
		}
	}
}
