package core_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

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

	// 9 of 100 is a smaller share than 4 of 5.
	l = newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "five", Limits: []core.Limit{{Quota: 60, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 5}}},
		{Name: "hundred", Limits: []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 100}}},
	}}, newClock())
	five, hundred := core.Hit{Rule: "five", Key: "k"}, core.Hit{Rule: "hundred", Key: "k"}
	_, _ = l.Take(t.Context(), 90, hundred)
	if d, err := l.Take(t.Context(), 1, five, hundred); err != nil || d.Rule() != "hundred" {
		t.Errorf("%v, %v, want rule hundred", d, err)
	}
	if d, err := l.Take(t.Context(), 5, five, hundred); err != nil || d.Rule() != "five" {
		t.Errorf("%v, %v, want rule five, which denies", d, err)
	}
	c := newClock()
	l = newLimiter(t, oneRule(fixed(10, time.Second), fixed(100, time.Hour), fixed(10, time.Minute)), c)
	for range 6 {
		_, _ = l.Take(t.Context(), 8, core.Hit{Rule: "r"})
		c.advance(time.Minute)
	}
	if d, err := l.Peek(t.Context(), 1, core.Hit{Rule: "r"}); err != nil || d.Limit().Name != "r-1h" {
		t.Errorf("%v, %v, want limit r-1h, of which half is left", d, err)
	}
}

// Several keys of one rule: the decision names the one that denies, and
// the policy field names the rule's limit once.
func TestSeveralKeysOfARule(t *testing.T) {
	l := twoRules(t, newClock())
	one, two := core.Hit{Rule: "ip", Key: "1"}, core.Hit{Rule: "ip", Key: "2"}
	_, _ = l.Take(t.Context(), 5, two)
	d, err := l.Take(t.Context(), 1, one, two)
	if want := (core.StoreRule{Name: "ip"}).StoredKey("two", []byte("2\x00")); err != nil || d.Allowed || d.StoredKey() != want {
		t.Errorf("%v, %v, of %s, want %s", d, err, d.StoredKey(), want)
	}
	if got, want := d.AppendHeaders(nil)[0].Value, `"ip";q=5;w=60`; got != want {
		t.Errorf("policy %s, want %s", got, want)
	}
}

// The counter that a request was charged to is found by the hit of its decision, and by
// no other. A decision tells its key, whatever it is made of.
func TestTheHitOfADecisionFindsItsCounter(t *testing.T) {
	quota := func(_ core.Request, l core.Limit) (int64, error) { return l.Quota + 2, nil }
	quotas := map[string][]int64{"a quota": {7}, "quotas of a key": {11, 7}}
	for name, rules := range map[string][]core.Rule{
		"one limit":       {{Name: "user", Limits: []core.Limit{core.PerMinute(5)}}},
		"two rules":       {{Name: "ip", Limits: []core.Limit{core.PerMinute(100)}}, {Name: "user", Limits: []core.Limit{core.PerMinute(5), core.PerHour(9)}}},
		"a quota":         {{Name: "user", Quota: quota, Limits: []core.Limit{core.PerMinute(5)}}},
		"quotas of a key": {{Name: "ip", Limits: []core.Limit{core.PerMinute(100)}}, {Name: "user", Quota: quota, Limits: []core.Limit{core.PerMinute(9), core.PerHour(5)}}},
	} {
		for _, key := range []string{"", "alice", "a\x00b\x01", strings.Repeat("long", 100)} {
			for _, extra := range []string{"", "acme"} {
				for i := range rules {
					rules[i].Key = static(key)
				}
				l := newLimiter(t, core.Config{Rules: rules, Hooks: hooktest.Funcs{KeyExtraFunc: func(core.Request) (string, error) { return extra, nil }}}, newClock())
				d := l.Check(&request{})
				hit := d.Hit()
				want := core.Hit{Rule: "user", Key: key, Extra: extra, Quotas: quotas[name]}
				if !reflect.DeepEqual(hit, want) || d.Key() != key {
					t.Fatalf("%s: %+v", name, hit)
				}
				seen, err := l.Peek(t.Context(), 1, hit)
				if err != nil || seen.Remaining != d.Remaining || seen.StoredKey() != d.StoredKey() || !reflect.DeepEqual(seen.Hit(), hit) {
					t.Errorf("%s: %v, %v, want %v", name, seen, err, d)
				}
				other := hit
				other.Extra += "x"
				if seen, _ := l.Peek(t.Context(), 1, other); seen.Remaining == d.Remaining || seen.StoredKey() == d.StoredKey() {
					t.Errorf("%s: another extra finds it too: %v", name, seen)
				}
				clear(hit.Quotas) // they are the caller's
				if d.Limit().Quota == 0 {
					t.Errorf("%s: the quotas of a hit are those of the decision: %v", name, d)
				}
			}
		}
	}
}

// A decision keeps its key, whatever is decided later and however long keys are.
func TestADecisionKeepsItsKey(t *testing.T) {
	var key string
	l := newLimiter(t, core.Config{Rules: []core.Rule{{
		Name: "r", Limits: []core.Limit{core.PerMinute(2)},
		Key: func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, key...), nil },
	}}}, nil)
	var decisions []core.Decision
	want := func(i int) string { return strings.Repeat(string(rune('a'+i%26)), i%150) }
	for i := range 1000 {
		key = want(i)
		decisions = append(decisions, l.Check(&request{}))
	}
	for i, d := range decisions {
		if got := d.Key(); got != want(i) {
			t.Fatalf("decision %d has the key %q, want %q", i, got, want(i))
		}
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

func TestTheZeroDecision(t *testing.T) {
	var d core.Decision
	if d.Limiter() != "" || d.Rule() != "" || d.Key() != "" || d.StoredKey() != "" || d.Limit() != (core.Limit{}) || !reflect.DeepEqual(d.Hit(), core.Hit{}) || d.String() != "no decision" || len(slices.Collect(d.Limits())) != 0 {
		t.Errorf("%v: %+v", d, d.Hit())
	}
}

// A checker around a limiter attaches a note, and then needs the outcome. Copies are the same decision.
func TestTheNoteOfADecision(t *testing.T) {
	d := newLimiter(t, oneRule(core.PerMinute(5), core.PerHour(9)), nil).Check(&request{})
	if d.Note() != nil || d.NeedsOutcome() {
		t.Errorf("%v without a note", d.Note())
	}
	d.SetNote("guarded")
	if same := d; same.Note() != "guarded" || !same.NeedsOutcome() || same.Limiter() != "default" || len(slices.Collect(same.Limits())) != 2 {
		t.Errorf("%v, %v", same.Note(), same.NeedsOutcome())
	}
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

func TestTheTextOfADecision(t *testing.T) {
	window := oneRule(fixed(2, 1500*time.Millisecond))
	failing := func(err error, dryRun bool) core.Config {
		c := oneRule(core.PerMinute(1))
		c.DryRun, c.Rules[0].Key, c.Log = dryRun, fails(err), new(lines).logger()
		return c
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	preflight := &request{method: "OPTIONS", header: map[string][]string{"Access-Control-Request-Method": {"GET"}}}
	for _, row := range []struct {
		config core.Config
		r      *request
		want   string
	}{
		{window, &request{}, `limiter "default" allows 1 hit: 1 of 2 left for rule "r", limit "r" (2 per 1500ms (fixed_window)), whole again in 1.5s`},
		{oneRule(core.PerMinute(5)), &request{}, "whole again in 1m0s"},
		{oneRule(core.PerMinute(0)), &request{}, `denies 1 hit: rule "r", limit "r" (0 per 1m) has 0 left, and waiting does not help`},
		{failing(context.Canceled, false), &request{ctx: gone}, `limiter "default" denies, because the client has gone`},
		{window, preflight, "does not limit"},
		{failing(core.SkipRule, false), &request{}, "has no rule"},
		{failing(core.ErrBadRequest, false), &request{}, "denies a bad request"},
		{failing(core.ErrBadRequest, true), &request{}, "would deny a bad request"},
		{failing(errFault, true), &request{}, "would deny, because it could not decide"},
	} {
		if d := newLimiter(t, row.config, newClock()).Check(row.r); !strings.Contains(d.String(), row.want) {
			t.Errorf("%q, want %q", d.String(), row.want)
		}
	}
	l := newLimiter(t, window, newClock())
	_, _ = l.Take(t.Context(), 2, core.Hit{Rule: "r", Key: "k"})
	if got := l.Check(&request{}).String(); !strings.HasSuffix(got, `(2 per 1500ms (fixed_window)) has 0 left, and will allow it in 1.5s`) {
		t.Error(got)
	}
}

// Logs and documents have the names.
func TestTheNamesOfConstants(t *testing.T) {
	for got, want := range map[fmt.Stringer]string{
		core.OpTake: "take", core.OpResetAll: "reset all", core.OpTake | core.OpPeek: "Op(0x3)", core.AllOps + 1: "Op(0x100)",
		core.FailOpen: "fail open", core.FailLocal: "local", core.FailClosed: "fail closed", core.FailClosed + 1: "OnFailure(3)",
		core.ReasonWithinLimits: "within limits", core.ReasonCanceled: "canceled", core.ReasonCanceled + 1: "unknown reason",
		core.SlidingLog: "sliding_log", core.TokenBucket + 1: "unknown_algorithm", core.Limit{Quota: 1, Window: 1500 * time.Microsecond}: "1 per 1.5ms",
		core.Lockout{}: "none", core.Lockout{First: time.Minute, Factor: 1}: "waits of 1m", core.Lockout{First: time.Minute}: "waits of 1m × 2 up to 1h",
		core.Limit{Quota: 5, Window: time.Hour, Lockout: core.Lockout{First: time.Minute}}: "5 per 1h (waits of 1m × 2 up to 1h)",
	} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func ExampleDecision_Status() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: static("192.0.2.1"), Limits: []core.Limit{core.PerMinute(1)}}}}))
	fmt.Println(limiter.Check(&request{}).Status(), limiter.Check(&request{}).Status())
	// Output: 200 429
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

func ExampleDecision_Limits() {
	limiter := core.Must(core.New(oneRule(core.PerSecond(10), core.PerHour(240))))
	for s := range limiter.Check(&request{}).Limits() {
		fmt.Println(s.Limit.Name, s.Remaining)
	}
	// Output:
	// r-1s 9
	// r-1h 239
}
