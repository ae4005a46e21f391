package core_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

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
			Hooks: core.HookFuncs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { return core.Denial{Status: status} }},
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
