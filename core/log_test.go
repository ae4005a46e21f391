package core_test

import (
	"bytes"
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

func TestAFailingStoreIsLoggedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const line = `level=ERROR msg="floodgate: the store failed" limiter=api operation=check rule="r0, r1" error="dial tcp 10.1.2.3:6379: connection refused"`
		log, s := &lines{}, newCounting()
		config := core.Config{Name: "api", Store: s, Log: log.logger(), Rules: numbered(2)}
		l := newLimiter(t, config, nil)
		l.Check(&request{})
		wantLines(t, log)

		s.fault = errFault
		for range 1000 {
			l.Check(&request{})
		}
		wantLines(t, log, line)
		time.Sleep(time.Second - 1)
		l.Check(&request{})
		wantLines(t, log)
		time.Sleep(time.Nanosecond)
		l.Check(&request{})
		wantLines(t, log, line+" suppressed=1000")
		time.Sleep(time.Hour)
		l.Check(&request{})
		wantLines(t, log, line)

		// Another configuration does not begin to log anew.
		if err := l.Reconfigure(config); err != nil {
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
		rules := numbered(2)
		rules[0].Key = func(dst []byte, _ core.Request) ([]byte, error) { return dst, keyErr }
		rules[1].Key = bodyKey
		l := newLimiter(t, core.Config{Name: "api", Store: s, Hooks: hooks, Log: log.logger(), Rules: rules}, nil)
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
			`level=ERROR msg="floodgate: a function of a rule failed" limiter=api operation=check rule=r0 error="key of rule \"r0\": dial tcp 10.1.2.3:6379: connection refused"`,
			`level=ERROR msg="floodgate: a hook failed" limiter=api operation=check error="KeyExtra: no tenant"`,
			// The rule whose key needs the body has not been asked yet.
			`level=ERROR msg="floodgate: the store failed" limiter=api operation=check rule=r0 error="dial tcp 10.1.2.3:6379: connection refused"`)

		time.Sleep(time.Second)
		fail(nil, nil, errors.New("no price"), nil)
		wantLines(t, log, `level=ERROR msg="floodgate: a hook failed" limiter=api operation=check error="Cost: no price" suppressed=1`)

		costErr = nil
		l.Check(&request{body: "alice", bodyErr: fmt.Errorf("the client is slow: %w", core.ErrBadRequest)})
		wantLines(t, log) // the client's fault is not the operator's
		l.Check(&request{body: "alice", bodyErr: errors.New("unexpected EOF")})
		wantLines(t, log, `level=ERROR msg="floodgate: a function of a rule failed" limiter=api operation=check rule=r1 error="key of rule \"r1\": unexpected EOF"`)
	})
}

// Methods that return an error do not log it, but for Take and Wait, whose callers may drop it.
func TestWhichOperationsLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s := &lines{}, newCounting()
		config := oneRule(core.PerMinute(100))
		config.Name, config.Store, config.Log, config.Rules[0].Counts = "api", s, log.logger(), never
		l := newLimiter(t, config, nil)
		d := l.Check(&request{})
		s.fault = errFault
		hit := core.Hit{Rule: "r", Key: "k"}
		for what, f := range map[string]func(){
			"Peek":                       func() { _, _ = l.Peek(t.Context(), 1, hit) },
			"Reset":                      func() { _ = l.Reset(t.Context(), hit) },
			"a rule that does not exist": func() { _, _ = l.Take(t.Context(), 1, core.Hit{Rule: "none"}) },
			"a negative cost":            func() { _, _ = l.Take(t.Context(), -1, hit) },
		} {
			f()
			if got := log.take(); got != nil {
				t.Errorf("%s is logged: %s", what, strings.Join(got, "\n"))
			}
		}
		if _, err := l.Take(t.Context(), 1, hit, core.Hit{Rule: "r", Key: "other"}); err == nil {
			t.Error("Take: no error")
		}
		wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=take rule=r error="dial tcp 10.1.2.3:6379: connection refused"`)
		time.Sleep(time.Second)
		l.Settle(&request{}, d, core.Outcome{Status: 200})
		wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=refund rule=r error="dial tcp 10.1.2.3:6379: connection refused"`)
	})
}

func TestTheDefaultLoggerMayBeSetLater(t *testing.T) {
	config := oneRule(core.PerMinute(1))
	config.Rules[0].Key = func(dst []byte, r core.Request) ([]byte, error) {
		requestlog.Of(r).Info("a key")
		return dst, errFault
	}
	l := newLimiter(t, config, nil)
	log, before := &lines{}, slog.Default()
	slog.SetDefault(log.logger())
	defer slog.SetDefault(before)
	l.Check(&request{})
	if got := log.take(); len(got) != 2 || got[0] != `level=INFO msg="a key" limiter=default` || !strings.Contains(got[1], "limiter=default") {
		t.Errorf("%q", got)
	}
}

// wrapped is a request as a program's own key function hands it on.
type wrapped struct{ core.Request }

func TestAKeyFunctionGetsTheLimitersLog(t *testing.T) {
	log, rules := &lines{}, numbered(2)
	rules[0].Key = func(dst []byte, r core.Request) ([]byte, error) {
		requestlog.Of(r).Info("without the body")
		return dst, nil
	}
	rules[1].Key = func(dst []byte, r core.Request) ([]byte, error) {
		if r.Value("another key") != "another key" {
			t.Error("the log has every key")
		}
		if _, err := r.Body(1); err != nil {
			return dst, err
		}
		requestlog.Of(wrapped{r}).Info("with the body")
		return dst, nil
	}
	l := newLimiter(t, core.Config{Name: "api", Log: log.logger(), Rules: rules}, nil)
	if d := l.Check(&request{body: "b"}); !d.Allowed {
		t.Error(d)
	}
	without := `level=INFO msg="without the body" limiter=api`
	wantLines(t, log, without, without, `level=INFO msg="with the body" limiter=api`) // the first rule is asked before and after the body is read
}

// What is legal and probably a mistake is logged once.
func TestARuleThatLimitsNobodyIsLoggedOnce(t *testing.T) {
	check := func(l *core.Limiter, n int) {
		for range n {
			l.Check(&request{body: "a"})
		}
	}
	get := func(l *core.Limiter) { l.Check(&request{method: "GET"}) }
	for name, row := range map[string]struct {
		key  core.KeyFunc
		do   func(l *core.Limiter)
		want int
	}{
		"100 requests without a key":             {fails(core.SkipRule), func(l *core.Limiter) { check(l, 500) }, 1},
		"a rule that is only for a few requests": {fails(fmt.Errorf("only for a few: %w", core.SkipRule)), func(l *core.Limiter) { check(l, 500) }, 0},
		"99 requests without a key":              {orSkip, func(l *core.Limiter) { check(l, 99); get(l); check(l, 500) }, 0},
		"a key at first":                         {orSkip, func(l *core.Limiter) { get(l); check(l, 500) }, 0},
		"a key of the body": {func(dst []byte, r core.Request) ([]byte, error) {
			if b, err := r.Body(9); err == nil {
				return append(dst, b...), nil
			}
			return dst, core.SkipRule
		}, func(l *core.Limiter) { check(l, 500) }, 0},
	} {
		log, config := &lines{}, oneRule(core.PerMinute(5))
		config.Log, config.Rules[0].Key = log.logger(), row.key
		row.do(newLimiter(t, config, newClock()))
		got := log.take()
		if len(got) != row.want || row.want > 0 && (!strings.Contains(got[0], "level=WARN") || !strings.HasSuffix(got[0], "rule=r")) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
