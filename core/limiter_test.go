package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func twoRules(t testing.TB, c *clock) *core.Limiter {
	return newLimiter(t, core.Config{Name: "two", Rules: []core.Rule{
		{Name: "ip", Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "user", Limits: []core.Limit{core.PerMinute(3), core.PerHour(4)}},
	}}, c)
}

func TestTakeChargesAllOrNone(t *testing.T) {
	l, ctx := twoRules(t, newClock()), t.Context()
	ip, user := core.Hit{Rule: "ip", Key: "a"}, core.Hit{Rule: "user", Key: "u"}
	for i := range 5 {
		d, err := l.Take(ctx, 1, ip, user)
		if err != nil || d.Allowed != (i < 3) {
			t.Fatalf("take %d: %v, %v", i+1, d, err)
		}
	}
	if got := left(t, l, "ip", "a"); got != 2 {
		t.Errorf("%d left of the address, want 2: denied requests drain it", got)
	}
	if d, err := l.Take(ctx, 2, ip, ip, ip); err != nil || !d.Allowed || left(t, l, "ip", "a") != 0 {
		t.Errorf("a counter named three times: %v, %v, %d left", d, err, left(t, l, "ip", "a"))
	}
	if d, err := l.Take(ctx, 1); err != nil || !d.Allowed || d.Reason != core.ReasonNoRule {
		t.Errorf("a take of nothing: %v, %v", d, err)
	}
}

func TestOddCosts(t *testing.T) {
	l, ctx, k := twoRules(t, newClock()), t.Context(), core.Hit{Rule: "ip", Key: "k"}
	for _, row := range []struct {
		cost    int64
		allowed bool
	}{{0, true}, {6, false}, {math.MaxInt64, false}, {math.MaxInt64 - 1, false}, {math.MaxInt64 - 1, false}, {5, true}, {1, false}, {0, true}} {
		d, err := l.Take(ctx, row.cost, k)
		if err != nil || d.Allowed != row.allowed {
			t.Errorf("cost %d: %v, %v", row.cost, d, err)
		}
		if row.cost > 5 && d.RetryAfter != core.Never {
			t.Errorf("cost %d: RetryAfter %v", row.cost, d.RetryAfter)
		}
	}
	if _, err := l.Take(ctx, -1, k); !errors.Is(err, core.ErrNegativeCost) {
		t.Errorf("cost -1: %v", err)
	}
	for name, f := range map[string]func() error{
		"Take":  func() error { _, err := l.Take(ctx, 1, core.Hit{Rule: "none"}); return err },
		"Peek":  func() error { _, err := l.Peek(ctx, 1, core.Hit{Rule: "none"}); return err },
		"Reset": func() error { return l.Reset(ctx, core.Hit{Rule: "none"}) },
	} {
		if err := f(); !errors.Is(err, core.ErrUnknownRule) || !strings.Contains(err.Error(), `limiter "two", rule "none": floodgate: unknown rule`) {
			t.Errorf("%s of an unknown rule: %v", name, err)
		}
	}
}

func TestPeekChargesNothing(t *testing.T) {
	l, ctx, k := twoRules(t, newClock()), t.Context(), core.Hit{Rule: "ip", Key: "k"}
	for range 3 {
		if d, err := l.Peek(ctx, 5, k); err != nil || !d.Allowed || d.Remaining != 5 {
			t.Fatalf("%v, %v", d, err)
		}
	}
	if d, _ := l.Peek(ctx, 6, k); d.Allowed {
		t.Error("a peek above the quota is allowed")
	}
}

func TestRefundAndReset(t *testing.T) {
	c := newClock()
	l, ctx := twoRules(t, c), t.Context()
	ip, user := core.Hit{Rule: "ip", Key: "k"}, core.Hit{Rule: "user", Key: strings.Repeat("long", 100)}
	one, _ := l.Take(ctx, 2, ip)
	both, _ := l.Take(ctx, 3, ip, user)
	denied, _ := l.Take(ctx, 3, ip, user)
	peeked, _ := l.Peek(ctx, 1, user)
	for _, step := range []struct {
		d        core.Decision
		ip, user int64
	}{{denied, 0, 0}, {peeked, 0, 0}, {core.Decision{}, 0, 0}, {both, 3, 3}, {both, 3, 3}, {one, 5, 3}} {
		if err := l.Adjust(ctx, step.d, 0); err != nil {
			t.Fatal(err)
		}
		if i, u := left(t, l, "ip", ip.Key), left(t, l, "user", user.Key); i != step.ip || u != step.user {
			t.Fatalf("after the refund of %v: %d and %d left, want %d and %d", step.d, i, u, step.ip, step.user)
		}
	}
	old, _ := l.Take(ctx, 5, ip)
	c.advance(3 * time.Minute)
	_, _ = l.Take(ctx, 2, ip)
	if err := l.Adjust(ctx, old, 0); err != nil || left(t, l, "ip", "k") != 3 {
		t.Errorf("a refund into a window that has gone: %v, %d left", err, left(t, l, "ip", "k"))
	}
	if err := l.Reset(ctx, ip, user); err != nil || left(t, l, "ip", "k") != 5 {
		t.Errorf("reset: %v, %d left", err, left(t, l, "ip", "k"))
	}
}

func TestTheDecidingLimit(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{
		{Name: "small", Quota: 2, Window: time.Second, Algorithm: core.FixedWindow},
		{Name: "large", Quota: 10, Window: time.Minute, Algorithm: core.FixedWindow},
		{Name: "long", Quota: 2, Window: time.Hour, Algorithm: core.FixedWindow},
		{Name: "as-long", Quota: 2, Window: time.Hour, Algorithm: core.SlidingLog},
	}}}}, newClock())
	want := func(i int, name string, allowed bool) {
		t.Helper()
		d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r"})
		if err != nil || d.Limit().Name != name || d.Allowed != allowed {
			t.Errorf("take %d: %v, %v, want limit %q", i, d, err, name)
		}
	}
	want(1, "small", true) // 1 of 2 left, first of equals
	want(2, "small", true)
	want(3, "long", false) // the longest wait, first of equals
}

func TestTheStoresErrorIsADecision(t *testing.T) {
	s := newCounting()
	s.fault = errFault
	l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r"})
	if !errors.Is(err, errFault) || d.Allowed || d.Reason != core.ReasonFailed || !errors.Is(d.Err, errFault) {
		t.Errorf("%v, %v", d, err)
	}
	if d := l.Check(&request{}); d.Allowed || !errors.Is(d.Err, errFault) || strings.Contains(d.String(), "10.1.2.3") {
		t.Errorf("%v", d)
	}
	s.fault, s.degraded = nil, true
	if d := l.Check(&request{}); !d.Allowed || !d.Degraded || !strings.Contains(d.String(), "without the shared counters") {
		t.Errorf("%v", d)
	}
	if got := l.Stats(); got.Failed != 2 || got.Allowed != 1 || got.Degraded != 1 {
		t.Errorf("%+v", got)
	}
	s.degraded = false
	if d := l.Check(&request{}); d.Allowed || d.Degraded {
		t.Errorf("after the store has come back: %v", d)
	}
}

// These names must not change but with a major version.
func TestStoredKeysStayWhatTheyAre(t *testing.T) {
	for _, row := range []struct{ limiter, rule, key, want string }{
		{"api", "ip", "192.0.2.1\x00", "fg1:api:ip:jMAsCXnmQY9oApfknKGStA"},
		{"api", "ip", "\x00", "fg1:api:ip:bjQLnP-zepicpUTmu3gKLA"},
	} {
		if got := (core.StoreRule{Name: row.rule}).StoredKey(row.limiter, []byte(row.key)); got != row.want {
			t.Errorf("%q: %q, want %q", row.key, got, row.want)
		}
	}
	long := strings.Repeat("k", 10_000)
	for _, key := range []string{"", "192.0.2.1", "a b\r\n", long} {
		l := newLimiter(t, core.Config{Name: "api", Rules: []core.Rule{{Name: "ip", Key: static(key), Limits: []core.Limit{core.PerMinute(5)}}}}, nil)
		want := core.StoreRule{Name: "ip"}.StoredKey("api", append([]byte(key), 0))
		taken, _ := l.Take(t.Context(), 1, core.Hit{Rule: "ip", Key: key})
		if checked := l.Check(&request{}); checked.StoredKey() != want || taken.StoredKey() != want {
			t.Errorf("%.20q: %q by Check, %q by Take, want %q", key, checked.StoredKey(), taken.StoredKey(), want)
		}
		if len(want) > 200 || strings.Trim(want, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz:_.-") != "" {
			t.Errorf("%q has characters that some store does not accept", want)
		}
	}
}

// Several keys of one rule: the decision names the one that denies, and
// the policy field names the rule's limit once.
func TestSeveralKeysOfARule(t *testing.T) {
	l := twoRules(t, newClock())
	one, two := core.Hit{Rule: "ip", Key: "1"}, core.Hit{Rule: "ip", Key: "2"}
	if _, err := l.Take(t.Context(), 5, two); err != nil {
		t.Fatal(err)
	}
	d, err := l.Take(t.Context(), 1, one, two)
	if want := (core.StoreRule{Name: "ip"}).StoredKey("two", []byte("2\x00")); err != nil || d.Allowed || d.StoredKey() != want {
		t.Errorf("%v, %v, of %s, want %s", d, err, d.StoredKey(), want)
	}
	if got, want := d.AppendHeaders(nil)[0].Value, `"ip";q=5;w=60`; got != want {
		t.Errorf("policy %s, want %s", got, want)
	}
}

func TestARefundOfNothingCallsNoStore(t *testing.T) {
	s := newCounting()
	l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{
		{Name: "r", Key: func(dst []byte, r core.Request) ([]byte, error) {
			if r.Method() == "" {
				return dst, core.SkipRule
			}
			return dst, nil
		}, Limits: []core.Limit{core.PerMinute(100)}},
	}}, nil)
	for range 20 {
		l.Check(&request{method: "GET"})
		if err := l.Adjust(t.Context(), l.Check(&request{}), 0); err != nil || s.refunds != 0 {
			t.Fatalf("error %v, %d refunds", err, s.refunds)
		}
	}
	d, err := l.Take(t.Context(), 0, core.Hit{Rule: "r", Key: "a"}, core.Hit{Rule: "r", Key: "b"})
	if err = errors.Join(err, l.Adjust(t.Context(), d, 0)); err != nil || s.refunds != 0 {
		t.Errorf("of a take that cost nothing: error %v, %d refunds", err, s.refunds)
	}
}

func TestDecisionsShowNothingOfTheClient(t *testing.T) {
	key := "alice\r\nlevel=info fake"
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: static(key), Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
	for range 2 {
		d := l.Check(&request{})
		if s := d.String() + d.StoredKey(); strings.Contains(s, "alice") || strings.ContainsAny(s, "\r\n") {
			t.Errorf("%q", s)
		}
		if den := l.Deny(&request{}, d); strings.Contains(string(den.Body), "alice") {
			t.Errorf("%s", den.Body)
		}
	}
}

func ExampleLimiter_Take() {
	limiter := core.Must(core.New(core.Config{
		Rules: []core.Rule{
			{Name: "tenant", Limits: []core.Limit{core.PerMinute(100)}},
			{Name: "user", Limits: []core.Limit{core.PerMinute(10)}},
		},
	}))
	// A job that costs 8 hits, of a tenant and of a user.
	hits := []core.Hit{{Rule: "tenant", Key: "t1"}, {Rule: "user", Key: "alice"}}
	for range 2 {
		d, err := limiter.Take(context.Background(), 8, hits...)
		fmt.Println(d.Allowed, d.Rule(), d.Remaining, err)
	}
	// Output:
	// true user 2 <nil>
	// false user 2 <nil>
}

func ExampleLimiter_Peek() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(10)}}}}))
	d, _ := limiter.Peek(context.Background(), 11, core.Hit{Rule: "r", Key: "k"})
	fmt.Println(d.Allowed, d.Remaining, d.RetryAfter == core.Never)
	// Output: false 10 true
}

func ExampleLimiter_Reset() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}}))
	ctx, k := context.Background(), core.Hit{Rule: "r", Key: "k"}
	_, _ = limiter.Take(ctx, 1, k)
	_ = limiter.Reset(ctx, k)
	d, _ := limiter.Take(ctx, 1, k)
	fmt.Println(d.Allowed)
	// Output: true
}

func ExampleDecision_String() {
	limiter := core.Must(core.New(core.Config{Name: "api", Rules: []core.Rule{{Name: "ip", Limits: []core.Limit{
		{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow},
	}}}}))
	k := core.Hit{Rule: "ip", Key: "192.0.2.1"}
	d, _ := limiter.Take(context.Background(), 1, k)
	fmt.Println(d)
	d, _ = limiter.Take(context.Background(), 2, k)
	fmt.Println(d)
	// Output:
	// limiter "api" allows 1 hit: 0 of 1 left for rule "ip", limit "ip" (1 per 1h (fixed_window)), whole again in 1h0m0s
	// limiter "api" denies 2 hits: rule "ip", limit "ip" (1 per 1h (fixed_window)) has 0 left, and waiting does not help
}

func ExampleStoreRule_StoredKey() {
	fmt.Println(core.StoreRule{Name: "ip"}.StoredKey("api", []byte("192.0.2.1\x00")))
	// Output: fg1:api:ip:jMAsCXnmQY9oApfknKGStA
}

func TestAllowWithoutHitsIsTrue(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
	if !l.Allow(t.Context()) {
		t.Error("denied")
	}
}

// What keeps Allow from deciding is logged, as nobody else hears of it.
func TestAllowDeniesAndLogsIfItCannotDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s := &lines{}, newCounting()
		l := newLimiter(t, core.Config{Name: "api", Store: s, Log: log.logger(), DryRun: true, Rules: []core.Rule{
			{Name: "user", Limits: []core.Limit{core.PerMinute(100)}},
		}}, nil)
		for range 2 { // one line a second
			if l.Allow(t.Context(), core.Hit{Rule: "usr", Key: "alice"}) {
				t.Error("a rule that does not exist allows")
			}
		}
		wantLines(t, log, `level=ERROR msg="floodgate: a call failed" limiter=api operation=allow error="limiter \"api\", rule \"usr\": floodgate: unknown rule"`)
		s.fault = errFault
		if l.Allow(t.Context(), core.Hit{Rule: "user", Key: "alice"}) {
			t.Error("a store that fails allows")
		}
		wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=take rule=user error="dial tcp 10.1.2.3:6379: connection refused"`)
		if got := l.Stats().Failed; got != 3 {
			t.Errorf("%d failures are counted, want 3", got)
		}
	})
}

func TestAllowOfAClosedMemoryIsFalse(t *testing.T) {
	log, m := &lines{}, core.Must(core.NewMemory(core.MemoryConfig{}))
	l := newLimiter(t, core.Config{Name: "api", Store: m, Log: log.logger(), Rules: []core.Rule{
		{Name: "user", Limits: []core.Limit{core.PerMinute(100)}},
	}}, nil)
	hit := core.Hit{Rule: "user", Key: "alice"}
	l.Allow(t.Context(), hit)
	if l.Allow(t.Context(), core.Hit{Rule: "usr", Key: "alice"}) {
		t.Error("a rule that does not exist allows")
	}
	log.take()
	for _, want := range []bool{true, true, false} {
		if !want {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if got := l.Allow(t.Context(), hit); got != want {
			t.Errorf("Allow is %t, want %t", got, want)
		}
	}
	wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=take rule=user error="in-process counters: floodgate: store is closed"`)
}

// Beside an observer, Allow keeps to all that a hit says.
func TestAllowBesideAnObserver(t *testing.T) {
	w := &watcher{}
	l := newLimiter(t, core.Config{Observer: w, Log: (&lines{}).logger(), Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(2)}}}}, newClock())
	for i, row := range []struct {
		hit  core.Hit
		want bool
	}{
		{core.Hit{Rule: "r", Key: "k"}, true}, {core.Hit{Rule: "r", Key: "k"}, true}, {core.Hit{Rule: "r", Key: "k"}, false},
		{core.Hit{Rule: "r", Key: "k", Extra: "x"}, true},
		{core.Hit{Rule: "r", Key: "k", Quotas: []int64{3}}, true}, {core.Hit{Rule: "r", Key: "k", Quotas: []int64{3}}, false},
		{core.Hit{Rule: "no", Key: "k"}, false},
	} {
		if got := l.Allow(t.Context(), row.hit); got != row.want {
			t.Errorf("%d: %+v: Allow is %t, want %t", i, row.hit, got, row.want)
		}
	}
	if got := len(w.take()); got != 7 {
		t.Errorf("%d decisions were observed, want 7", got)
	}
}

// partly is a store that denies the first batch for its second item, and has not
// looked at the first item; it allows later ones.
type partly struct{ takes int }

func (p *partly) Open(string, []core.StoreRule) (core.Counters, error) { return p, nil }
func (p *partly) Reopen([]core.StoreRule) (core.Counters, error)       { return p, nil }
func (*partly) Guarantees() core.Guarantees                            { return core.Guarantees{Ops: core.OpTake} }

func (p *partly) Do(_ context.Context, b *core.Batch) error {
	p.takes++
	b.Allowed = p.takes > 1
	for i := range b.Items {
		b.Items[i].Results[0] = core.Result{Allowed: b.Allowed, Remaining: 1}
	}
	if !b.Allowed {
		b.Items[0].Unknown = true
		b.Items[0].Results[0].RetryAfter = core.Never // means nothing
		b.Items[1].Results[0].RetryAfter = time.Second
	}
	return nil
}

func TestWhatTheStoreHasNotLookedAt(t *testing.T) {
	l := core.Must(core.New(core.Config{Name: "l", Store: new(partly), Rules: []core.Rule{
		{Name: "a", Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "b", Limits: []core.Limit{core.PerMinute(5)}},
	}}))
	for take, want := range []int{1, 2, 2} {
		d, err := l.Take(t.Context(), 1, core.Hit{Rule: "a"}, core.Hit{Rule: "b"})
		if err != nil || d.Allowed != (take > 0) {
			t.Fatalf("take %d: %v, %v", take, d, err)
		}
		n := 0
		for range d.Limits() {
			n++
		}
		if n != want {
			t.Errorf("take %d: %d limits, want %d", take, n, want)
		}
		if take == 0 && (d.Rule() != "b" || d.RetryAfter != time.Second) {
			t.Errorf("decided by %v", d)
		}
	}
}

// A hit finds its rule by the name, however many rules there are, and none by a name that no rule has.
func TestHitsFindTheirRules(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 9, 40} {
		config := core.Config{}
		for i := range n {
			config.Rules = append(config.Rules, core.Rule{Name: fmt.Sprint("rule", i), Limits: []core.Limit{core.PerHour(int64(i) + 1)}})
		}
		l := newLimiter(t, config, newClock())
		for _, name := range []string{"", "rule", "rule40", "rule00"} {
			if d, err := l.Take(t.Context(), 1, core.Hit{Rule: name, Key: "k"}); !errors.Is(err, core.ErrUnknownRule) || d.Allowed {
				t.Errorf("%d rules, %q: %v, %v", n, name, d, err)
			}
		}
		for i := range n {
			d, err := l.Take(t.Context(), 1, core.Hit{Rule: fmt.Sprint("rule", i), Key: "k"})
			if err != nil || d.Limit().Quota != int64(i)+1 || d.Remaining != int64(i) {
				t.Errorf("%d rules, rule%d: %v, %v", n, i, d, err)
			}
		}
	}
}
