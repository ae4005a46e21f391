package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

// noted records the order in which the limiter calls its key functions.
func noted(calls *[]string, name string, f core.KeyFunc) core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		*calls = append(*calls, name)
		return f(dst, r)
	}
}

func TestTheOrderOfQuestions(t *testing.T) {
	var calls []string
	hooks := hooktest.Funcs{
		ShouldLimitFunc: func(core.Request) bool { calls = append(calls, "should"); return true },
		KeyExtraFunc:    func(core.Request) (string, error) { calls = append(calls, "extra"); return "", nil },
		CostFunc:        func(core.Request) (int64, error) { calls = append(calls, "cost"); return 1, nil },
	}
	s := newCounting()
	l := newLimiter(t, core.Config{Name: "l", Store: s, Hooks: hooks, Log: new(lines).logger(), Rules: []core.Rule{
		{Name: "body", Key: noted(&calls, "body", bodyKey), Limits: []core.Limit{core.PerMinute(100)}},
		{Name: "ip", Key: noted(&calls, "ip", static("ip")), Limits: []core.Limit{core.PerMinute(1)}},
	}}, nil)

	r := &request{body: "alice"}
	if d := l.Check(r); !d.Allowed || r.reads != 1 || s.takes != 2 {
		t.Errorf("%v, body read %d times, %d operations", d, r.reads, s.takes)
	}
	if got, want := strings.Join(calls, " "), "should extra cost body ip extra cost body ip"; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}

	s.takes, s.fault = 0, errFault
	if d := l.Check(r); d.Reason != core.ReasonFailed || r.reads != 1 || s.takes != 1 {
		t.Errorf("a store that fails: %v, body read %d times, %d operations", d, r.reads, s.takes)
	}
	s.takes, s.fault = 0, nil
	r = &request{body: "alice"}
	if d := l.Check(r); d.Allowed || d.Rule() != "ip" || r.reads != 0 || s.takes != 1 {
		t.Errorf("over the address limit: %v, body read %d times, %d operations", d, r.reads, s.takes)
	}
	if got := left(t, l, "body", "alice"); got != 99 {
		t.Errorf("%d left for the body's key, want 99", got)
	}
}

// Each operation is an exchange with a server.
func TestHowOftenTheStoreIsAsked(t *testing.T) {
	plain := core.Rule{Name: "plain", Key: static("k"), Limits: []core.Limit{core.PerMinute(100)}}
	body := core.Rule{Name: "body", Key: bodyKey, Limits: []core.Limit{core.PerMinute(100)}}
	nobody := core.Rule{Name: "nobody", Limits: []core.Limit{core.PerMinute(100)}, Key: func(dst []byte, r core.Request) ([]byte, error) {
		if _, err := r.Body(100); err != nil {
			return dst, err
		}
		return dst, core.SkipRule
	}}
	for name, c := range map[string]struct {
		rules []core.Rule
		takes int
	}{
		"one rule":                                  {[]core.Rule{plain}, 1},
		"a key from the body":                       {[]core.Rule{body}, 1},
		"a key before one from the body":            {[]core.Rule{plain, body}, 2},
		"no key in the body":                        {[]core.Rule{nobody}, 0},
		"a key before one that is not in the body":  {[]core.Rule{plain, nobody}, 2},
		"no key in the body before one that is not": {[]core.Rule{nobody, body}, 1},
	} {
		s := newCounting()
		l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: c.rules}, nil)
		if d := l.Check(&request{body: "b"}); !d.Allowed || s.takes != c.takes {
			t.Errorf("%s: %v, %d operations, want %d", name, d, s.takes, c.takes)
		}
	}
}

func TestErrorsOfKeyFunctions(t *testing.T) {
	ip := core.Rule{Name: "ip", Key: static("ip"), Limits: []core.Limit{core.PerMinute(2)}}
	with := func(keys ...core.KeyFunc) *core.Limiter {
		config := core.Config{Rules: []core.Rule{ip}, Log: new(lines).logger()}
		for i, key := range keys {
			config.Rules = append(config.Rules, core.Rule{Name: fmt.Sprint("r", i), Key: key, Limits: []core.Limit{core.PerMinute(1)}})
		}
		return newLimiter(t, config, newClock())
	}
	t.Run("SkipRule", func(t *testing.T) {
		l := with(fails(fmt.Errorf("nobody: %w", core.SkipRule)))
		if d := l.Check(&request{}); !d.Allowed || d.Rule() != "ip" {
			t.Error(d)
		}
		only := newLimiter(t, core.Config{Rules: []core.Rule{{Key: fails(core.SkipRule), Limits: []core.Limit{core.PerMinute(0)}}}}, nil)
		if d := only.Check(&request{}); !d.Allowed || d.Reason != core.ReasonNoRule || len(d.AppendHeaders(nil)) != 0 {
			t.Error(d)
		}
	})
	t.Run("ErrBadRequest charges the others", func(t *testing.T) {
		l := with(fails(fmt.Errorf("twice: %w", core.ErrBadRequest)), fails(&core.BadRequestError{Detail: "the second"}))
		for i, want := range []core.Reason{core.ReasonBadRequest, core.ReasonBadRequest, core.ReasonOverLimit} {
			d := l.Check(&request{})
			if d.Allowed || d.Reason != want {
				t.Errorf("request %d: %v", i+1, d)
			}
			den, status, body := l.Deny(&request{}, d), 400, `{"type":"about:blank","title":"Bad Request","status":400,"detail":"The request cannot be understood."}`
			if want == core.ReasonOverLimit {
				status, body = 429, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"Try again in 60 s.","violated-policies":["ip"]}`
			}
			if den.Status != status || string(den.Body) != body {
				t.Errorf("request %d: %d %s", i+1, den.Status, den.Body)
			}
		}
	})
	t.Run("any other", func(t *testing.T) {
		l := with(fails(errFault), fails(errors.New("the second")))
		d := l.Check(&request{})
		if d.Allowed || d.Reason != core.ReasonFailed || !errors.Is(d.Err, errFault) || left(t, l, "ip", "ip") != 2 {
			t.Errorf("%v, %d left", d, left(t, l, "ip", "ip"))
		}
		if den := l.Deny(&request{}, d); den.Status != 503 || string(den.Body) != `{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"The request cannot be processed right now. Try again later."}` {
			t.Errorf("%d %s", den.Status, den.Body)
		}
	})
	t.Run("a body that cannot be read", func(t *testing.T) {
		if d := with(bodyKey).Check(&request{bodyErr: errFault}); d.Reason != core.ReasonFailed {
			t.Error(d)
		}
	})
}

// A key function may return a slice of its own, and not the one that it was given.
func TestAKeyFunctionThatIgnoresWhatItIsGiven(t *testing.T) {
	rules, keys := numbered(3), []string{"a long key", "k", "key"}
	for i, key := range keys {
		rules[i].Key = func([]byte, core.Request) ([]byte, error) { return []byte(key), nil }
	}
	rules[2].Key = static(keys[2])
	l := newLimiter(t, core.Config{Rules: rules}, newClock())
	for range 2 {
		l.Check(&request{})
	}
	for i, key := range keys {
		if got := left(t, l, rules[i].Name, key); got != 8 {
			t.Errorf("key %q: %d left, want 8", key, got)
		}
	}
}

// A key function that keeps quiet about an error of Body counts by the body all the same: what it
// returns before the body can be read is not used.
func TestAKeyFunctionThatIgnoresAnErrorOfBody(t *testing.T) {
	quiet := func(dst []byte, r core.Request) ([]byte, error) {
		b, _ := r.Body(100)
		return append(dst, b...), nil
	}
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: quiet, Limits: []core.Limit{core.PerHour(1)}}}}, newClock())
	for _, body := range []string{"alice", "bob"} {
		if d := l.Check(&request{body: body}); !d.Allowed || d.Key() != body {
			t.Errorf("the body %q: %v, key %q", body, d, d.Key())
		}
	}
}

func TestDryRun(t *testing.T) {
	var heard []core.Decision
	config := oneRule(core.PerMinute(1))
	config.DryRun = true
	config.Hooks = hooktest.Funcs{OnDisallowedFunc: func(_ core.Request, d core.Decision) core.Denial {
		heard = append(heard, d)
		return core.Denial{}
	}}
	l := newLimiter(t, config, newClock())
	for i, dryRun := range []bool{false, true, true} {
		if d := l.Check(&request{}); !d.Allowed || d.DryRun != dryRun {
			t.Errorf("request %d: %v", i+1, d)
		}
	}
	if len(heard) != 2 || heard[0].Allowed || !heard[0].DryRun || !strings.Contains(heard[0].String(), "would deny") {
		t.Errorf("the hook heard %v", heard)
	}
	for name, ask := range map[string]func(context.Context, int64, ...core.Hit) (core.Decision, error){"Take": l.Take, "Peek": l.Peek} {
		if d, err := ask(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); err != nil || !d.Allowed || !d.DryRun {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
	if got := hooktest.Count(l); got.DryRun != 3 || got.Allowed != 1 || got.Denied != 0 {
		t.Errorf("%+v", got)
	}
	for name, key := range map[string]core.KeyFunc{"a fault": fails(errFault), "a bad request": fails(core.ErrBadRequest)} {
		l := newLimiter(t, core.Config{DryRun: true, Rules: []core.Rule{{Key: key, Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
		if d := l.Check(&request{}); !d.Allowed || !d.DryRun || d.Err == nil {
			t.Errorf("%s denies in a dry run: %v", name, d)
		} else if den := d.Denial(&request{}); den.Status != 429 || !strings.HasSuffix(string(den.Body), `"status":429,"detail":"Try again in 1 s."}`) {
			t.Errorf("a handler that denies it all the same: %d %s", den.Status, den.Body)
		}
	}
	// A bad request that is let through counts by its outcome.
	rules := numbered(2)
	rules[0].Counts, rules[1].Key = func(_ core.Request, o core.Outcome) bool { return o.Status == 401 }, fails(core.ErrBadRequest)
	l = newLimiter(t, core.Config{DryRun: true, Rules: rules}, newClock())
	l.Settle(&request{}, l.Check(&request{}), core.Outcome{Status: 401})
	if got := left(t, l, "r0", "k"); got != 9 {
		t.Errorf("%d left, want 9", got)
	}
}

// The charge of a bad request can be given back.
func TestTheChargeOfABadRequestIsAdjusted(t *testing.T) {
	rules := numbered(2)
	rules[0].Limits, rules[1].Key = []core.Limit{core.PerMinute(1)}, fails(core.ErrBadRequest)
	l := newLimiter(t, core.Config{Rules: rules}, newClock())
	for range 2 {
		d := l.Check(&request{})
		if d.Reason != core.ReasonBadRequest {
			t.Fatal(d)
		}
		if err := l.Adjust(t.Context(), d, 0); err != nil {
			t.Error(err)
		}
	}
}

// The client gets 400, whatever the other rules' Counts make of that.
func TestABadRequestIsSettledAs400(t *testing.T) {
	var told []core.Outcome
	rules := numbered(2)
	rules[0].Counts = func(_ core.Request, o core.Outcome) bool {
		told = append(told, o)
		return o.Status != 400
	}
	rules[1].Key = fails(core.ErrBadRequest)
	l := newLimiter(t, core.Config{Rules: rules}, newClock())
	if d := l.Check(&request{}); d.Reason != core.ReasonBadRequest {
		t.Fatal(d)
	}
	if got := left(t, l, "r0", "k"); got != 10 || len(told) != 1 || told[0].Status != 400 {
		t.Errorf("%d hits left, want 10; the outcomes are %v", got, told)
	}
	// A request over a limit has charged nothing that could be given back.
	rules[1].Key, rules[1].Limits, told = static("k"), []core.Limit{core.PerHour(0)}, nil
	if d := newLimiter(t, core.Config{Rules: rules}, newClock()).Check(&request{}); d.Reason != core.ReasonOverLimit || told != nil {
		t.Errorf("%v, the outcomes are %v", d, told)
	}
}

// A request that was decided on before Reconfigure is answered by the hooks that it
// was decided with.
func TestADenialIsOfTheConfigurationThatDenied(t *testing.T) {
	with := func(status int) core.Config {
		c := oneRule(core.PerMinute(0))
		c.Hooks = hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { return core.Denial{Status: status} }}
		return c
	}
	l := newLimiter(t, with(403), nil)
	d := l.Check(&request{})
	if err := l.Reconfigure(with(503)); err != nil {
		t.Fatal(err)
	}
	for want, d := range map[int]core.Decision{403: d, 503: l.Check(&request{})} {
		if a, b := l.Deny(&request{}, d).Status, d.Denial(&request{}).Status; a != want || b != want {
			t.Errorf("statuses %d and %d, want %d", a, b, want)
		}
	}
	if a, b := l.Deny(&request{}, core.Decision{}).Status, (core.Decision{}).Denial(&request{}).Status; a != 503 || b != 429 {
		t.Errorf("of no decision: statuses %d and %d, want 503 and 429", a, b)
	}
}

// A client that hangs up is no failure of the store: clients that open and reset requests would
// raise an alarm. A request that may not wait is denied by its limit all the same.
func TestAClientThatHangsUpIsNoFailureOfTheStore(t *testing.T) {
	reason, down := errors.New("the server shuts down"), errors.New("down")
	for name, c := range map[string]struct {
		cause  error // of the context; nil: it does not end
		err    error // of the store
		reason core.Reason
	}{
		"canceled":                       {context.Canceled, context.Canceled, core.ReasonCanceled},
		"canceled for a reason":          {reason, reason, core.ReasonCanceled},
		"canceled, which is all it says": {reason, context.Canceled, core.ReasonCanceled},
		"canceled while the store fails": {context.Canceled, down, core.ReasonFailed},
		"canceled by the store":          {nil, fmt.Errorf("redis: %w", context.Canceled), core.ReasonFailed},
		"answered":                       {context.Canceled, nil, core.ReasonOverLimit},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		log, w, config := new(lines), new(watcher), oneRule(core.PerHour(0))
		config.Log, config.Observer = log.logger(), w
		config.Store = aroundMemory(func(ctx context.Context, inner core.Counters, b *core.Batch) error {
			if c.cause != nil {
				cancel(c.cause)
			}
			if c.err == nil {
				return inner.Do(ctx, b)
			}
			return c.err
		})
		l := newLimiter(t, config, nil)
		d := l.Check(&request{ctx: ctx})
		if text := headerText(d); d.Allowed || d.Reason != c.reason || !errors.Is(d.Err, c.err) || c.err != nil && text != "Cache-Control: no-store\nRetry-After: 1\n" {
			t.Errorf("%s: %v: %v, %v\n%s", name, d, d.Reason, d.Err, text)
		}
		logged, stored := 0, 1
		switch c.reason {
		case core.ReasonFailed:
			logged = 1
		case core.ReasonCanceled:
			stored = 0
		}
		if got := log.take(); len(w.stored) != stored || len(got) != logged || len(w.seen) != 1 || w.seen[0].Reason != c.reason {
			t.Errorf("%s: the observer has seen %v and %q, logged %q", name, w.seen, w.stored, got)
		}
	}
}

// The detail of a BadRequestError reaches the client whole, whatever
// characters it has, and however the error is wrapped.
func FuzzBadRequestDetail(f *testing.F) {
	for _, s := range []string{`the field "user\name" is missing`, "line\nbreak\x00\x1f\x7f", "\xff</script>\u2028", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, detail string) {
		fault := fmt.Errorf("around: %w", &core.BadRequestError{Detail: detail})
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Key: fails(fault), Limits: []core.Limit{core.PerHour(10)}}}}, newClock())
		r := &request{}
		d := l.Check(r)
		den := l.Deny(r, d)
		var body struct {
			Status int
			Detail string
		}
		if err := json.Unmarshal(den.Body, &body); err != nil {
			t.Fatalf("%s: %v", den.Body, err)
		}
		if want := string([]rune(detail)); den.Status != 400 || body.Status != 400 || body.Detail != want {
			t.Errorf("status %d, body %+v, want the detail %q", den.Status, body, want)
		}
		if !errors.Is(d.Err, core.ErrBadRequest) || !strings.Contains(d.Err.Error(), detail) {
			t.Errorf("error %v", d.Err)
		}
	})
}

func ExampleBadRequestError() {
	tenant := func(dst []byte, r core.Request) ([]byte, error) {
		lines := r.HeaderValues("X-Tenant")
		if len(lines) != 1 {
			return dst, &core.BadRequestError{Detail: "the header X-Tenant must be given once"}
		}
		return append(dst, lines[0]...), nil
	}
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Key: tenant, Limits: []core.Limit{core.PerHour(10)}}}}))
	r := &request{}
	fmt.Printf("%s\n", limiter.Deny(r, limiter.Check(r)).Body)
	// Output: {"type":"about:blank","title":"Bad Request","status":400,"detail":"the header X-Tenant must be given once"}
}

func ExampleConfig_dryRun() {
	limiter := core.Must(core.New(core.Config{DryRun: true, Rules: []core.Rule{
		{Name: "user", Limits: []core.Limit{core.PerMinute(1)}},
	}}))
	for range 2 {
		d, _ := limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "42"})
		fmt.Println(d.Allowed, d.DryRun)
	}
	// Output:
	// true false
	// true true
}
