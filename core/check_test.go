package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

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
	l := newLimiter(t, core.Config{Name: "l", Store: s, Hooks: hooks, Rules: []core.Rule{
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

	s.takes = 0
	r = &request{body: "alice"}
	if d := l.Check(r); d.Allowed || d.Rule() != "ip" || r.reads != 0 || s.takes != 1 {
		t.Errorf("over the address limit: %v, body read %d times, %d operations", d, r.reads, s.takes)
	}
	if got := left(t, l, "body", "alice"); got != 99 {
		t.Errorf("%d left for the body's key, want 99", got)
	}
}

func TestErrorsOfKeyFunctions(t *testing.T) {
	ip := core.Rule{Name: "ip", Key: static("ip"), Limits: []core.Limit{core.PerMinute(2)}}
	with := func(f core.KeyFunc) *core.Limiter {
		return newLimiter(t, core.Config{Rules: []core.Rule{ip, {Name: "x", Key: f, Limits: []core.Limit{core.PerMinute(1)}}}}, newClock())
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
		l := with(fails(fmt.Errorf("twice: %w", core.ErrBadRequest)))
		for i, want := range []core.Reason{core.ReasonBadRequest, core.ReasonBadRequest, core.ReasonOverLimit} {
			d := l.Check(&request{})
			if d.Allowed || d.Reason != want {
				t.Errorf("request %d: %v", i+1, d)
			}
			if den := l.Deny(&request{}, d); den.Status != map[core.Reason]int{core.ReasonBadRequest: 400, core.ReasonOverLimit: 429}[want] {
				t.Errorf("request %d: status %d", i+1, den.Status)
			}
		}
	})
	t.Run("any other", func(t *testing.T) {
		l := with(fails(errFault))
		d := l.Check(&request{})
		if d.Allowed || d.Reason != core.ReasonFailed || !errors.Is(d.Err, errFault) || left(t, l, "ip", "ip") != 2 {
			t.Errorf("%v, %d left", d, left(t, l, "ip", "ip"))
		}
		if den := l.Deny(&request{}, d); den.Status != 503 || strings.Contains(string(den.Body), "10.1.2.3") {
			t.Errorf("%d %s", den.Status, den.Body)
		}
	})
	t.Run("a body that cannot be read", func(t *testing.T) {
		l := with(bodyKey)
		if d := l.Check(&request{bodyErr: errFault}); d.Reason != core.ReasonFailed {
			t.Error(d)
		}
	})
}

// A key function that returns a slice of its own, and not the one it was given.
func TestAKeyFunctionThatIgnoresWhatItIsGiven(t *testing.T) {
	own := func(key string) core.KeyFunc {
		return func([]byte, core.Request) ([]byte, error) { return []byte(key), nil }
	}
	limits := []core.Limit{core.PerMinute(5)}
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "a", Key: own("a long key"), Limits: limits}, {Name: "b", Key: own("k"), Limits: limits}, {Name: "c", Key: static("key"), Limits: limits},
	}}, newClock())
	for range 2 {
		l.Check(&request{})
	}
	for rule, key := range map[string]string{"a": "a long key", "b": "k", "c": "key"} {
		if got := left(t, l, rule, key); got != 3 {
			t.Errorf("rule %q: %d left, want 3", rule, got)
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
	l := newLimiter(t, core.Config{
		DryRun: true,
		Hooks: hooktest.Funcs{OnDisallowedFunc: func(_ core.Request, d core.Decision) core.Denial {
			heard = append(heard, d)
			return core.Denial{}
		}},
		Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}},
	}, newClock())
	for i, dryRun := range []bool{false, true, true} {
		if d := l.Check(&request{}); !d.Allowed || d.DryRun != dryRun {
			t.Errorf("request %d: %v", i+1, d)
		}
	}
	if len(heard) != 2 || heard[0].Allowed || !heard[0].DryRun || !strings.Contains(heard[0].String(), "would deny") {
		t.Errorf("the hook heard %v", heard)
	}
	counted := newLimiter(t, core.Config{DryRun: true, Rules: []core.Rule{
		{Name: "failures", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}, Counts: func(_ core.Request, o core.Outcome) bool { return o.Status == 401 }},
		{Name: "bad", Key: fails(core.ErrBadRequest), Limits: []core.Limit{core.PerMinute(1)}},
	}}, newClock())
	counted.Settle(&request{}, counted.Check(&request{}), core.Outcome{Status: 401})
	if got := left(t, counted, "failures", "k"); got != 4 {
		t.Errorf("a bad request that is let through counts by what becomes of it: %d left, want 4", got)
	}
	for name, key := range map[string]core.KeyFunc{"a fault": fails(errFault), "a bad request": fails(core.ErrBadRequest)} {
		l := newLimiter(t, core.Config{DryRun: true, Rules: []core.Rule{{Key: key, Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
		if d := l.Check(&request{}); !d.Allowed || !d.DryRun || d.Err == nil {
			t.Errorf("%s denies in a dry run: %v", name, d)
		}
	}
	if d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); err != nil || !d.Allowed || !d.DryRun {
		t.Errorf("%v, %v", d, err)
	}
	if got := l.Stats(); got.DryRun != 3 || got.Allowed != 1 || got.Denied != 0 {
		t.Errorf("%+v", got)
	}
}

func TestSettle(t *testing.T) {
	c, s := newClock(), newCounting()
	s.Store = core.Must(core.NewMemory(core.MemoryConfig{Clock: c.Now}))
	l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{
		{Name: "all", Key: static("k"), Limits: []core.Limit{core.PerMinute(20)}},
		{
			Name: "failures", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)},
			Counts: func(_ core.Request, o core.Outcome) bool { return o.Status >= 400 && o.Status < 500 },
			Clears: func(_ core.Request, o core.Outcome) bool { return o.Status < 400 },
		},
	}}, nil)
	want := func(what string, all, failures int64) {
		t.Helper()
		if a, f := left(t, l, "all", "k"), left(t, l, "failures", "k"); a != all || f != failures {
			t.Errorf("%s: %d and %d left, want %d and %d", what, a, f, all, failures)
		}
	}
	check := func() core.Decision {
		t.Helper()
		d := l.Check(&request{})
		if !d.Allowed || !d.NeedsOutcome() {
			t.Fatal(d)
		}
		return d
	}
	d := check()
	want("reserved before the handler", 19, 4)
	l.Settle(&request{}, d, core.Outcome{Status: 401})
	want("a failure stays", 19, 4)
	d = check()
	l.Settle(&request{}, d, core.Outcome{Status: 500})
	want("neither", 18, 4)
	l.Settle(&request{}, d, core.Outcome{Status: 500})
	want("settled twice", 18, 4)
	if err := l.Adjust(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
	want("settled, and then refunded", 18, 4)
	l.Settle(&request{}, check(), core.Outcome{Status: 200})
	want("a success clears", 17, 5)

	late := check()
	c.advance(3 * time.Minute)
	check()
	want("in a new window", 19, 4)
	l.Settle(&request{}, late, core.Outcome{Status: 500})
	want("settled after its window", 19, 4)

	if d := l.Check(&request{}); d.NeedsOutcome() {
		l.Settle(&request{}, core.Decision{}, core.Outcome{}) // of nothing
	}
	if d, _ := l.Take(t.Context(), 1, core.Hit{Rule: "failures", Key: "k"}); d.NeedsOutcome() {
		t.Error("a Take wants to know an outcome")
	}
}

// A request that may not wait is denied by its limit, whether its client is still there or not.
func TestADenialAfterTheClientHasGone(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}}}, newClock())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, want := range []bool{true, false, false} {
		if d := l.Check(&request{ctx: ctx}); d.Allowed != want || d.Err != nil {
			t.Errorf("%v, %v, want allowed %t and no error", d, d.Err, want)
		}
	}
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

// The client is told 400, whatever the other rules' Counts make of that.
func TestABadRequestIsSettledAs400(t *testing.T) {
	var told []core.Outcome
	counts := func(_ core.Request, o core.Outcome) bool {
		told = append(told, o)
		return o.Status != 400
	}
	limited := core.Rule{Name: "limited", Key: static("k"), Limits: []core.Limit{core.PerHour(5)}, Counts: counts}
	l := newLimiter(t, core.Config{Rules: []core.Rule{limited, {Name: "bad", Key: fails(fmt.Errorf("twice: %w", core.ErrBadRequest)), Limits: []core.Limit{core.PerHour(5)}}}}, newClock())
	for range 9 {
		if d := l.Check(&request{}); d.Reason != core.ReasonBadRequest {
			t.Fatal(d)
		}
	}
	if got := left(t, l, "limited", "k"); got != 5 || len(told) != 9 || told[0].Status != 400 {
		t.Errorf("%d hits left, want 5; the outcomes are %v", got, told)
	}

	// A request over a limit has charged nothing that could be given back.
	told = nil
	l = newLimiter(t, core.Config{Rules: []core.Rule{limited, {Name: "full", Key: static("k"), Limits: []core.Limit{core.PerHour(0)}}}}, newClock())
	if d := l.Check(&request{}); d.Reason != core.ReasonOverLimit || told != nil {
		t.Errorf("%v, the outcomes are %v", d, told)
	}
}

// A request that was decided on before Reconfigure is answered by the hooks that it
// was decided with.
func TestADenialIsOfTheConfigurationThatDenied(t *testing.T) {
	with := func(status int) core.Config {
		return core.Config{
			Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(0)}}},
			Hooks: hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { return core.Denial{Status: status} }},
		}
	}
	c := newClock()
	before := with(403)
	before.Store = core.Must(core.NewMemory(core.MemoryConfig{Clock: c.Now}))
	l := newLimiter(t, before, nil)
	d := l.Check(&request{})
	after := with(503)
	after.Store = before.Store
	if err := l.Reconfigure(after); err != nil {
		t.Fatal(err)
	}
	if got := l.Deny(&request{}, d).Status; got != 403 {
		t.Errorf("status %d, want 403", got)
	}
	if got := l.Deny(&request{}, l.Check(&request{})).Status; got != 503 {
		t.Errorf("status %d after Reconfigure, want 503", got)
	}
	if got := l.Deny(&request{}, core.Decision{}).Status; got != 503 {
		t.Errorf("status %d of a decision that no limiter has made, want 503", got)
	}
}

// A peek that was answered without the shared counters says nothing of the take after it.
func TestATakeIsNotDegradedBecauseOfThePeekBeforeIt(t *testing.T) {
	store := &around{core.Must(core.NewMemory(core.MemoryConfig{})), func(ctx context.Context, c core.Counters, b *core.Batch) error {
		b.Degraded = b.Degraded || b.Op == core.OpPeek
		return c.Do(ctx, b)
	}}
	limits := []core.Limit{core.PerHour(5)}
	l := core.Must(core.New(core.Config{Store: store, Rules: []core.Rule{
		{Name: "method", Key: methodKey("POST"), Limits: limits}, {Name: "body", Key: bodyKey, Limits: []core.Limit{core.PerHour(6)}},
	}}))
	if d := l.Check(&request{method: "POST", body: "ann"}); !d.Allowed || d.Degraded {
		t.Errorf("%v: degraded is %v", d, d.Degraded)
	}
}

// If the charge of one key is made and the refund of another is not, a second Adjust does not
// charge again.
func TestAdjustDoesNotChargeTwiceIfItsRefundFails(t *testing.T) {
	charges := 0
	store := &around{core.Must(core.NewMemory(core.MemoryConfig{})), func(ctx context.Context, c core.Counters, b *core.Batch) error {
		switch b.Op {
		case core.OpCharge:
			charges++
		case core.OpRefund:
			return core.ErrNotCharged
		}
		return c.Do(ctx, b)
	}}
	costs := func(n int64) func(core.Request) (int64, error) {
		return func(core.Request) (int64, error) { return n, nil }
	}
	l := core.Must(core.New(core.Config{Store: store, Rules: []core.Rule{
		{Name: "little", Key: methodKey("POST"), Cost: costs(1), Limits: []core.Limit{core.PerHour(50)}},
		{Name: "much", Key: methodKey("POST"), Cost: costs(9), Limits: []core.Limit{core.PerHour(60)}},
	}}))
	r := &request{method: "POST"}
	d := l.Check(r)
	l.Settle(r, d, core.Outcome{Status: 200})
	for range 2 {
		_ = l.Adjust(t.Context(), d, 5)
	}
	if charges != 1 {
		t.Errorf("%d charges, want 1", charges)
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

// Nothing of an ordinary error reaches the client.
func TestABadRequestWithoutDetailTellsNothing(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Key: fails(fmt.Errorf("%w: secret", core.ErrBadRequest)), Limits: []core.Limit{core.PerHour(10)}}}}, newClock())
	r := &request{}
	if body := string(l.Deny(r, l.Check(r)).Body); strings.Contains(body, "secret") || !strings.Contains(body, "The request cannot be understood.") {
		t.Error(body)
	}
}

// If the keys of several rules are bad requests, the client is told the first.
func TestTheFirstBadRequestIsTold(t *testing.T) {
	bad := func(detail string) core.KeyFunc { return fails(&core.BadRequestError{Detail: detail}) }
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "a", Key: bad("the first"), Limits: []core.Limit{core.PerMinute(3)}},
		{Name: "b", Key: bad("the second"), Limits: []core.Limit{core.PerMinute(3)}},
	}}, newClock())
	d := l.Check(&request{})
	if body := string(l.Deny(&request{}, d).Body); !strings.Contains(body, "the first") {
		t.Errorf("%v: %s", d.Err, body)
	}
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

// A handler of denied requests that writes its own body takes the status from the decision.
func TestTheStatusOfADecision(t *testing.T) {
	for want, rows := range map[int][]core.Decision{
		200: {{Allowed: true}, {Allowed: true, Reason: core.ReasonSkipped}, {Allowed: true, Reason: core.ReasonFailed}, {Allowed: true, Reason: core.ReasonOverLimit, DryRun: true}},
		400: {{Reason: core.ReasonBadRequest}},
		429: {{Reason: core.ReasonOverLimit}},
		503: {{Reason: core.ReasonFailed}, {Reason: core.ReasonCanceled}},
	} {
		for _, d := range rows {
			if got := d.Status(); got != want {
				t.Errorf("%v, allowed: %t: status %d, want %d", d.Reason, d.Allowed, got, want)
			}
		}
	}
}

func ExampleDecision_Status() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: static("192.0.2.1"), Limits: []core.Limit{core.PerMinute(1)}}}}))
	fmt.Println(limiter.Check(&request{}).Status(), limiter.Check(&request{}).Status())
	// Output: 200 429
}

// A client that hangs up is no failure of the store: whoever opens and resets requests
// would else raise the alarm of who runs the limiter.
func TestAClientThatHangsUpIsNoFailureOfTheStore(t *testing.T) {
	reason := errors.New("the server shuts down")
	for name, c := range map[string]struct {
		context func(context.Context) (context.Context, func())
		err     error
		want    core.Reason
	}{
		"canceled": {func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) }, context.Canceled, core.ReasonCanceled},
		"canceled for a reason": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(reason) }
		}, reason, core.ReasonCanceled},
		"canceled while the store fails": {func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) }, errors.New("down"), core.ReasonFailed},
		"out of time": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, 0)
			return ctx, cancel
		}, context.DeadlineExceeded, core.ReasonFailed},
		"canceled by the store": {func(ctx context.Context) (context.Context, func()) { return ctx, func() {} }, context.Canceled, core.ReasonFailed},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := c.context(t.Context())
			defer cancel()
			var log lines
			var decided []core.Reason
			stored := 0
			hangsUp := &around{core.Must(core.NewMemory(core.MemoryConfig{})), func(context.Context, core.Counters, *core.Batch) error {
				cancel()
				return c.err
			}}
			l := core.Must(core.New(core.Config{
				Name: "api", Store: hangsUp, Log: log.logger(),
				Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(5)}}},
				Observer: observeFunc(func(string, []core.Rule) core.ObserverFuncs {
					return core.ObserverFuncs{
						Decided: func(_ context.Context, o core.Observation) { decided = append(decided, o.Reason) },
						Stored:  func(context.Context, string, time.Duration, error) { stored++ },
					}
				}),
			}))
			d := l.Check(&request{ctx: ctx})
			if d.Allowed || d.Reason != c.want || !errors.Is(d.Err, c.err) {
				t.Errorf("%v: %v, %v", d, d.Reason, d.Err)
			}
			if len(decided) != 1 || decided[0] != c.want {
				t.Errorf("the observer has seen %v", decided)
			}
			failed := 0
			if c.want == core.ReasonFailed {
				failed = 1
			}
			if s := l.Stats(); s.Failed != uint64(failed) || s.Canceled != uint64(1-failed) {
				t.Errorf("%+v", s)
			}
			if got := log.take(); stored != failed || len(got) != failed {
				t.Errorf("%d operations of the store observed, logged %q", stored, got)
			}
		})
	}
}
