package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/internal/requestlog"
)

// lines is a log that a test reads.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// take returns the lines written since the last call.
func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSuffix(l.buf.String(), "\n")
	l.buf.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// logger writes lines without the time.
func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func wantLines(t *testing.T, l *lines, want ...string) {
	t.Helper()
	if got := l.take(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const storeLine = `level=ERROR msg="floodgate: the store failed" limiter=api operation=check rule="ip, user" error="dial tcp 10.1.2.3:6379: connection refused"`

func TestAFailingStoreIsLoggedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s := &lines{}, newCounting()
		l := newLimiter(t, core.Config{Name: "api", Store: s, Log: log.logger(), Rules: []core.Rule{
			{Name: "ip", Key: static("192.0.2.1"), Limits: []core.Limit{core.PerMinute(100)}},
			{Name: "user", Key: static("alice"), Limits: []core.Limit{core.PerMinute(100)}},
		}}, nil)
		l.Check(&request{})
		wantLines(t, log)

		s.fault = errFault
		for range 1000 {
			l.Check(&request{})
		}
		wantLines(t, log, storeLine)
		time.Sleep(time.Second - 1)
		l.Check(&request{})
		wantLines(t, log)
		time.Sleep(time.Nanosecond)
		l.Check(&request{})
		wantLines(t, log, storeLine+" suppressed=1000")
		time.Sleep(time.Hour)
		l.Check(&request{})
		wantLines(t, log, storeLine)

		// Another configuration does not begin to log anew.
		if err := l.Reconfigure(core.Config{Log: log.logger(), Rules: []core.Rule{{Name: "ip", Key: static("192.0.2.1"), Limits: []core.Limit{core.PerMinute(100)}}}}); err != nil {
			t.Fatal(err)
		}
		l.Check(&request{})
		wantLines(t, log)
	})
}

func TestConcurrentFailuresAreOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		l := newLimiter(t, core.Config{Log: log.logger(), Rules: []core.Rule{{Key: fails(errFault), Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { l.Check(&request{}) })
		}
		all.Wait()
		if got := log.take(); len(got) != 1 {
			t.Errorf("%d lines: %s", len(got), strings.Join(got, "\n"))
		}
		time.Sleep(time.Second)
		l.Check(&request{})
		if got := strings.Join(log.take(), "\n"); !strings.HasSuffix(got, " suppressed=99") {
			t.Error(got)
		}
	})
}

func TestEachKindOfFailureHasItsOwnLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s := &lines{}, newCounting()
		var keyErr, extraErr, costErr error
		hooks := hooktest.Funcs{
			KeyExtraFunc: func(core.Request) (string, error) { return "", extraErr },
			CostFunc:     func(core.Request) (int64, error) { return 1, costErr },
		}
		l := newLimiter(t, core.Config{Name: "api", Store: s, Hooks: hooks, Log: log.logger(), Rules: []core.Rule{
			{Name: "ip", Key: func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, "192.0.2.1"...), keyErr }, Limits: []core.Limit{core.PerMinute(100)}},
			{Name: "user", Key: bodyKey, Limits: []core.Limit{core.PerMinute(100)}},
		}}, nil)
		fail := func(key, extra, cost, store error) {
			keyErr, extraErr, costErr, s.fault = key, extra, cost, store
			if d := l.Check(&request{body: "alice"}); d.Reason != core.ReasonFailed {
				t.Error(d)
			}
		}
		fail(errFault, nil, nil, nil)
		fail(nil, errors.New("no tenant"), nil, nil)
		fail(nil, nil, errors.New("no price"), nil)
		fail(nil, nil, nil, errFault)
		wantLines(t, log,
			`level=ERROR msg="floodgate: a function of a rule failed" limiter=api operation=check rule=ip error="key of rule \"ip\": dial tcp 10.1.2.3:6379: connection refused"`,
			`level=ERROR msg="floodgate: a hook failed" limiter=api operation=check error="KeyExtra: no tenant"`,
			// The rule whose key needs the body has not been asked yet.
			`level=ERROR msg="floodgate: the store failed" limiter=api operation=check rule=ip error="dial tcp 10.1.2.3:6379: connection refused"`)

		time.Sleep(time.Second)
		fail(nil, nil, errors.New("no price"), nil)
		wantLines(t, log, `level=ERROR msg="floodgate: a hook failed" limiter=api operation=check error="Cost: no price" suppressed=1`)

		keyErr, extraErr, costErr, s.fault = nil, nil, nil, nil
		l.Check(&request{body: "alice", bodyErr: fmt.Errorf("the client is slow: %w", core.ErrBadRequest)})
		wantLines(t, log) // the client's fault is not the operator's
		l.Check(&request{body: "alice", bodyErr: errors.New("unexpected EOF")})
		wantLines(t, log, `level=ERROR msg="floodgate: a function of a rule failed" limiter=api operation=check rule=user error="key of rule \"user\": unexpected EOF"`)
	})
}

func TestWhichOperationsLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s := &lines{}, newCounting()
		never := func(core.Request, core.Outcome) bool { return false }
		l := newLimiter(t, core.Config{Name: "api", Store: s, Log: log.logger(), Rules: []core.Rule{
			{Name: "ip", Key: static("192.0.2.1"), Limits: []core.Limit{core.PerMinute(100)}},
			{Name: "user", Key: static("alice"), Counts: never, Limits: []core.Limit{core.PerMinute(100)}},
		}}, nil)
		d := l.Check(&request{})
		s.fault = errFault
		hit := core.Hit{Rule: "user", Key: "alice"}
		for what, f := range map[string]func(){
			"Peek":  func() { _, _ = l.Peek(t.Context(), 1, hit) },
			"Reset": func() { _ = l.Reset(t.Context(), hit) },
			"a rule that does not exist": func() {
				_, _ = l.Take(t.Context(), 1, core.Hit{Rule: "none"})
			},
			"a negative cost": func() { _, _ = l.Take(t.Context(), -1, hit) },
			"a client that has gone": func() {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				s.fault = fmt.Errorf("redis: %w", context.Canceled)
				l.Check(&request{ctx: ctx})
				s.fault = errFault
			},
		} {
			f()
			if got := log.take(); got != nil {
				t.Errorf("%s is logged: %s", what, strings.Join(got, "\n"))
			}
		}
		if _, err := l.Take(t.Context(), 1, hit); err == nil {
			t.Error("Take: no error")
		}
		wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=take rule=user error="dial tcp 10.1.2.3:6379: connection refused"`)
		time.Sleep(time.Second)
		l.Settle(&request{}, d, core.Outcome{Status: 200})
		wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=refund rule=user error="dial tcp 10.1.2.3:6379: connection refused"`)
	})
}

// A store may give up by a context of its own, while the client still waits.
func TestAStoreThatGivesUpWhileTheClientWaitsIsLogged(t *testing.T) {
	log, s := &lines{}, newCounting()
	l := newLimiter(t, core.Config{Name: "api", Store: s, Log: log.logger(), Rules: []core.Rule{
		{Name: "ip", Key: static("192.0.2.1"), Limits: []core.Limit{core.PerMinute(100)}},
	}}, nil)
	s.fault = fmt.Errorf("redis: %w", context.Canceled)
	l.Check(&request{})
	wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=check rule=ip error="redis: context canceled"`)
}

func TestALineNamesEachRuleOnce(t *testing.T) {
	log, s := &lines{}, newCounting()
	s.fault = errFault
	l := newLimiter(t, core.Config{Name: "api", Store: s, Log: log.logger(), Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerMinute(9)}}}}, nil)
	if _, err := l.Take(t.Context(), 1, core.Hit{Rule: "user", Key: "a"}, core.Hit{Rule: "user", Key: "b"}); err == nil {
		t.Error("no error")
	}
	wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=take rule=user error="dial tcp 10.1.2.3:6379: connection refused"`)
}

func TestTheDefaultLoggerMayBeSetLater(t *testing.T) {
	broken := newCounting()
	broken.fault = errFault
	l := newLimiter(t, core.Config{Name: "api", Store: broken, Rules: []core.Rule{{Key: static(""), Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
	log, before := &lines{}, slog.Default()
	slog.SetDefault(log.logger())
	defer slog.SetDefault(before)
	l.Check(&request{})
	if got := log.take(); len(got) != 1 || !strings.Contains(got[0], "limiter=api") {
		t.Errorf("%q", got)
	}

	another := &lines{}
	slog.SetDefault(another.logger())
	broken.fault = nil
	if err := l.Reconfigure(core.Config{Rules: []core.Rule{{Key: func(dst []byte, r core.Request) ([]byte, error) {
		requestlog.Of(r).Info("first")
		slog.SetDefault(log.logger())
		requestlog.Of(r).Info("second")
		return dst, nil
	}, Limits: []core.Limit{core.PerMinute(1)}}}}); err != nil {
		t.Fatal(err)
	}
	l.Check(&request{})
	wantLines(t, another, "level=INFO msg=first limiter=api")
	wantLines(t, log, "level=INFO msg=second limiter=api")
}

// wrapped is a request as a program's own key function hands it on.
type wrapped struct{ core.Request }

func TestAKeyFunctionGetsTheLimitersLog(t *testing.T) {
	log := &lines{}
	note := func(text string) core.KeyFunc {
		return func(dst []byte, r core.Request) ([]byte, error) {
			if _, err := r.Body(1); err != nil {
				return dst, err
			}
			requestlog.Of(wrapped{r}).Info(text)
			return dst, nil
		}
	}
	l := newLimiter(t, core.Config{Name: "api", Log: log.logger(), Rules: []core.Rule{
		{Name: "a", Key: func(dst []byte, r core.Request) ([]byte, error) {
			requestlog.Of(r).Info("without the body")
			return dst, nil
		}, Limits: []core.Limit{core.PerMinute(1)}},
		{Name: "b", Key: note("with the body"), Limits: []core.Limit{core.PerMinute(1)}},
	}}, nil)
	if d := l.Check(&request{body: "b"}); !d.Allowed {
		t.Error(d)
	}
	without := `level=INFO msg="without the body" limiter=api`
	wantLines(t, log, without, without, `level=INFO msg="with the body" limiter=api`) // a is asked before and after the body is read
	if requestlog.Of(&request{}) != slog.Default() {
		t.Error("a request that no limiter has passed on has a log of its own")
	}
}

// What is legal and probably a mistake is logged once.
func TestWhatALimiterLogsOnce(t *testing.T) {
	skips, meant := fails(core.SkipRule), fails(fmt.Errorf("only for a few: %w", core.SkipRule))
	const keyless = `level=WARN msg="floodgate: a rule limits nobody: its key function has returned no key for its first 100 requests. ` +
		`If a middleware such as the authentication sets the key, mount the limiter inside that middleware" limiter=api rule=user`
	rule := func(key core.KeyFunc, quota, cost int64) core.Rule {
		return core.Rule{Name: "user", Key: key, Limits: []core.Limit{core.PerMinute(quota)}, Cost: func(core.Request) (int64, error) { return cost, nil }}
	}
	single := rule(skips, 5, 1)
	single.Cost = nil
	check := func(l *core.Limiter, n int) {
		for range n {
			l.Check(&request{method: "POST", body: "a"})
		}
	}
	get := func(l *core.Limiter) { l.Check(&request{method: "GET"}) }
	for name, row := range map[string]struct {
		rule core.Rule
		do   func(l *core.Limiter)
		want []string
	}{
		"100 requests without a key":               {rule(skips, 5, 1), func(l *core.Limiter) { check(l, 500) }, []string{keyless}},
		"the same, a rule that is decided quickly": {single, func(l *core.Limiter) { check(l, 500) }, []string{keyless}},
		"a rule that is only for a few requests":   {rule(meant, 5, 1), func(l *core.Limiter) { check(l, 500) }, nil},
		"99 requests without a key":                {rule(orSkip, 5, 1), func(l *core.Limiter) { check(l, 99); get(l); check(l, 500) }, nil},
		"a key at first":                           {rule(orSkip, 5, 1), func(l *core.Limiter) { get(l); check(l, 500) }, nil},
		"a key of the body": {rule(func(dst []byte, r core.Request) ([]byte, error) {
			if b, err := r.Body(9); err == nil {
				return append(dst, b...), nil
			}
			return dst, core.SkipRule
		}, 5, 1), func(l *core.Limiter) { check(l, 500) }, nil},
	} {
		log := &lines{}
		l := newLimiter(t, core.Config{Name: "api", Log: log.logger(), Rules: []core.Rule{row.rule}}, newClock())
		row.do(l)
		t.Log(name)
		wantLines(t, log, row.want...)
	}
}
