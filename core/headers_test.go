package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func headerText(d core.Decision) string {
	var b strings.Builder
	for _, h := range d.AppendHeaders(nil) {
		fmt.Fprintf(&b, "%s: %s\n", h.Name, h.Value)
	}
	return b.String()
}

func TestHeaderForms(t *testing.T) {
	limits := []core.Limit{
		{Name: "burst", Quota: 2, Window: 1500 * time.Millisecond, Algorithm: core.FixedWindow},
		{Name: "daily", Quota: 1000, Window: 24 * time.Hour, Algorithm: core.TokenBucket, Burst: 10},
	}
	const draft10 = "Ratelimit-Policy: \"burst\";q=2, \"daily\";q=10;w=864\nRatelimit: \"burst\";r=1;t=2, \"daily\";r=9;t=87\n"
	for _, row := range []struct {
		headers core.Headers
		want    string
	}{
		{0, draft10},
		{core.HeadersDraft10, draft10},
		{core.HeadersOff, ""},
		{core.HeadersDraft07, "Ratelimit: limit=2, remaining=1, reset=2\n"},
		{core.HeadersDraft07 | core.HeadersXMillis, "Ratelimit: limit=2, remaining=1, reset=2\nX-Ratelimit-Limit: 2\nX-Ratelimit-Remaining: 1\nX-Ratelimit-Reset: 1500\n"},
		{core.HeadersDraft03, "Ratelimit-Limit: 2\nRatelimit-Remaining: 1\nRatelimit-Reset: 2\n"},
		{core.HeadersXSeconds, "X-Ratelimit-Limit: 2\nX-Ratelimit-Remaining: 1\nX-Ratelimit-Reset: 2\n"},
		{core.HeadersXMillis, "X-Ratelimit-Limit: 2\nX-Ratelimit-Remaining: 1\nX-Ratelimit-Reset: 1500\n"},
		{core.HeadersXEpoch, "X-Ratelimit-Limit: 2\nX-Ratelimit-Remaining: 1\nX-Ratelimit-Reset: 1764000125\n"},
		{core.HeadersDraft10 | core.HeadersXSeconds, draft10 + "X-Ratelimit-Limit: 2\nX-Ratelimit-Remaining: 1\nX-Ratelimit-Reset: 2\n"},
	} {
		c := oneRule(limits...)
		c.Headers = row.headers
		if got := headerText(newLimiter(t, c, newClock()).Check(&request{})); got != row.want {
			t.Errorf("headers %#x:\n%swant\n%s", row.headers, got, row.want)
		}
	}
}

// A reset less than a millisecond away is never 0 in a header. As a Unix time, it is rounded up to
// the next second, and not to the one after.
func TestAResetBelowAMillisecond(t *testing.T) {
	limit := core.Limit{Name: "l", Quota: 2, Window: time.Second, Algorithm: core.FixedWindow}
	for headers, want := range map[core.Headers]string{
		core.HeadersDraft10:  "Ratelimit-Policy: \"l\";q=2;w=1\nRatelimit: \"l\";r=0;t=1\n",
		core.HeadersDraft03:  "Ratelimit-Limit: 2\nRatelimit-Remaining: 0\nRatelimit-Reset: 1\n",
		core.HeadersXMillis:  "X-Ratelimit-Limit: 2\nX-Ratelimit-Remaining: 0\nX-Ratelimit-Reset: 1\n",
		core.HeadersXSeconds: "X-Ratelimit-Limit: 2\nX-Ratelimit-Remaining: 0\nX-Ratelimit-Reset: 1\n",
		core.HeadersXEpoch:   "X-Ratelimit-Limit: 2\nX-Ratelimit-Remaining: 0\nX-Ratelimit-Reset: 1764000124\n",
	} {
		c, now := oneRule(limit), &clock{time.UnixMicro(1_764_000_122_999_900)}
		c.Headers = headers
		l := newLimiter(t, c, now)
		l.Check(&request{})
		now.advance(time.Second - 300*time.Microsecond)
		if got := headerText(l.Check(&request{})); got != want {
			t.Errorf("headers %#x:\n%swant\n%s", headers, got, want)
		}
	}
}

// Q for each w is the rate that the limit sustains.
func TestThePolicyOfATokenBucket(t *testing.T) {
	for _, row := range []struct {
		quota, burst int64
		window       time.Duration
		want         string
	}{
		{100, 0, time.Minute, "q=100;w=60"},
		{1000, 50, time.Hour, "q=50;w=180"},
		{1, 10, time.Second, "q=10;w=10"},
		{60, 4, 1500 * time.Millisecond, "q=4"}, // 100 ms
		{1000, 7, 24 * time.Hour, "q=7"},        // 604.8 s
		{3, 7, time.Minute, "q=7;w=140"},
		{7, 3, time.Minute, "q=3"},
		{0, 5, time.Minute, "q=0;w=60"},
		{1, core.MaxQuota, time.Second, "q=2147483647;w=2147483647"},
		{core.MaxQuota, core.MaxQuota, core.MaxWindow, "q=2147483647;w=31622400"},
	} {
		l := newLimiter(t, oneRule(core.Limit{Name: "b", Quota: row.quota, Burst: row.burst, Window: row.window, Algorithm: core.TokenBucket}), newClock())
		if got, want := headerText(l.Check(&request{})), "Ratelimit-Policy: \"b\";"+row.want+"\n"; !strings.HasPrefix(got, want) {
			t.Errorf("%d of burst %d in %v:\n%swant\n%s", row.quota, row.burst, row.window, got, want)
		}
	}
}

// No time helps a request that costs more than the quota. The field then has the
// time until more is available, as for a request that is allowed.
func TestTheRateLimitFieldOfACostAboveTheQuota(t *testing.T) {
	l := newLimiter(t, oneRule(core.Limit{Name: "b", Quota: 5, Window: time.Minute, Algorithm: core.FixedWindow}), newClock())
	for used, want := range []string{`"b";r=5;t=0`, `"b";r=4;t=60`} {
		d, err := l.Take(t.Context(), 6, core.Hit{Rule: "r", Key: "k"})
		if err != nil || d.RetryAfter != core.Never {
			t.Fatal(d, err)
		}
		if got := headerText(d); !strings.Contains(got, "Ratelimit: "+want+"\n") {
			t.Errorf("after %d hits:\n%swant %s", used, got, want)
		}
		l.Check(&request{})
	}
}

// A Checker around a limiter may deny a request that the limiter has allowed.
func TestRetryAfterOfADecisionThatAnotherCheckerHasChanged(t *testing.T) {
	l := newLimiter(t, oneRule(core.Limit{Name: "b", Quota: 5, Window: time.Minute, Algorithm: core.FixedWindow}), newClock())
	d := l.Check(&request{})
	d.Allowed, d.Reason, d.RetryAfter = false, core.ReasonOverLimit, 7*time.Second
	if got := headerText(d); !strings.Contains(got, "Ratelimit: \"b\";r=4;t=60\n") || !strings.Contains(got, "Retry-After: 7\n") {
		t.Error(got)
	}
	d.RetryAfter = 0
	if got := headerText(d); !strings.Contains(got, "Retry-After: 1\n") {
		t.Error(got)
	}
}

// Retry-After is that of the limit that denies, which need not be the last in RateLimit.
func TestRetryAfterOfTheFirstOfTwoLimits(t *testing.T) {
	l := newLimiter(t, oneRule(
		core.Limit{Name: "a", Quota: 1, Window: time.Minute, Algorithm: core.FixedWindow},
		core.Limit{Name: "b", Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow},
	), newClock())
	l.Check(&request{})
	if got := headerText(l.Check(&request{})); !strings.Contains(got, "Ratelimit: \"a\";r=0;t=60, \"b\";r=4;t=3600\n") || !strings.Contains(got, "Retry-After: 60\n") {
		t.Error(got)
	}
}

// What a denied client reads is true.
func TestRetryAfterIsTrue(t *testing.T) {
	for _, limit := range []core.Limit{
		{Quota: 3, Window: 100 * time.Millisecond, Algorithm: core.FixedWindow},
		{Quota: 3, Window: 10 * time.Second}, {Quota: 3, Window: 10 * time.Second, Algorithm: core.TokenBucket},
	} {
		c := newClock()
		l := newLimiter(t, oneRule(limit), c)
		var d core.Decision
		for d = l.Check(&request{}); d.Allowed; d = l.Check(&request{}) {
		}
		m := regexp.MustCompile(`(?m)^Retry-After: ([1-9][0-9]*)$`).FindStringSubmatch(headerText(d))
		if m == nil || !strings.Contains(headerText(d), "Cache-Control: no-store") || !strings.Contains(headerText(d), ";r=0;") {
			t.Fatalf("%v: %s", limit, headerText(d))
		}
		seconds, _ := time.ParseDuration(m[1] + "s")
		if seconds > time.Second {
			c.advance(seconds - time.Second)
			if l.Check(&request{}).Allowed {
				t.Errorf("%v: allowed a second before Retry-After", limit)
			}
			c.advance(time.Second)
		} else {
			c.advance(seconds)
		}
		c.advance(time.Millisecond) // what the header leaves out
		if !l.Check(&request{}).Allowed {
			t.Errorf("%v: denied at Retry-After, %v", limit, seconds)
		}
	}
	never := newLimiter(t, oneRule(core.PerMinute(0)), nil).Check(&request{})
	if text := headerText(never); strings.Contains(text, "Retry-After") {
		t.Errorf("no waiting helps: %s", text)
	}
}

// The fields are lists of strings with parameters (RFC 9651).
func TestFieldsAreStructured(t *testing.T) {
	item := `"[A-Za-z0-9_.-]+"(;[a-z]+=(0|[1-9][0-9]{0,14}))+`
	list := regexp.MustCompile(`^` + item + `(, ` + item + `)*$`)
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "a", Key: static(""), Limits: []core.Limit{core.PerSecond(core.MaxQuota), {Quota: 1, Window: core.MaxWindow, Algorithm: core.TokenBucket, Burst: 90}}},
		{Name: "b", Key: static(""), Limits: []core.Limit{{Quota: 5, Window: 2 * time.Millisecond}}},
		{Name: "c", Key: fails(core.SkipRule), Limits: []core.Limit{core.PerSecond(1)}},
	}}, newClock())
	for range 3 {
		for _, h := range l.Check(&request{}).AppendHeaders(nil) {
			if !list.MatchString(h.Value) || strings.Contains(h.Value, `"c"`) {
				t.Errorf("%s: %s", h.Name, h.Value)
			}
		}
	}
}

func TestTheStandardDenial(t *testing.T) {
	l := newLimiter(t, oneRule(core.Limit{Name: "a", Quota: 1, Window: time.Minute, Algorithm: core.FixedWindow}, core.Limit{Name: "b", Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow}, core.Limit{Name: "c", Quota: 9, Window: time.Minute}), newClock())
	l.Check(&request{})
	den := core.DefaultHooks{}.OnDisallowed(&request{}, l.Check(&request{}))
	var body map[string]any
	if err := json.Unmarshal(den.Body, &body); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type":              "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title":             "Request cannot be satisfied as assigned quota has been exceeded",
		"status":            429.0,
		"detail":            "Try again in 3600 s.",
		"violated-policies": []any{"a", "b"},
	}
	if den.Status != 429 || !reflect.DeepEqual(body, want) {
		t.Errorf("%d %v, want %v", den.Status, body, want)
	}
	if den := (core.DefaultHooks{}).OnDisallowed(&request{}, newLimiter(t, oneRule(core.PerMinute(0)), nil).Check(&request{})); !json.Valid(den.Body) || !strings.Contains(string(den.Body), "cannot be allowed") {
		t.Errorf("%s", den.Body)
	}
}

func ExampleDecision_AppendHeaders() {
	limiter := core.Must(core.New(oneRule(core.Limit{Name: "api", Quota: 100, Window: time.Minute, Algorithm: core.FixedWindow})))
	var buf [8]core.Header
	for _, h := range limiter.Check(&request{}).AppendHeaders(buf[:0]) {
		fmt.Printf("%s: %s\n", h.Name, h.Value)
	}
	// Output:
	// Ratelimit-Policy: "api";q=100;w=60
	// Ratelimit: "api";r=99;t=60
}

func ExampleDefaultHooks_OnDisallowed() {
	limiter := core.Must(core.New(oneRule(core.Limit{Name: "api", Quota: 0, Window: time.Minute})))
	den := core.DefaultHooks{}.OnDisallowed(&request{}, limiter.Check(&request{}))
	fmt.Println(den.Status, string(den.Body))
	// Output: 429 {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"The request costs more than the quota and cannot be allowed.","violated-policies":["api"]}
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

// No item without w is allowed, and no empty list.
func TestDraft07LeavesOutWindowsThatAreNoWholeSeconds(t *testing.T) {
	for _, row := range []struct {
		limits []core.Limit
		want   string
	}{
		{[]core.Limit{{Quota: 2, Window: 1500 * time.Millisecond, Algorithm: core.FixedWindow}}, "Ratelimit: limit=2, remaining=1, reset=2\n"},
		{[]core.Limit{{Quota: 0, Burst: 7, Window: time.Minute, Algorithm: core.TokenBucket}}, "Ratelimit-Policy: 0;w=60\nRatelimit: limit=0, remaining=0, reset=0\nCache-Control: no-store\n"},
	} {
		c := oneRule(row.limits...)
		c.Headers = core.HeadersDraft07
		if got := headerText(newLimiter(t, c, newClock()).Check(&request{})); got != row.want {
			t.Errorf("%v:\n%swant\n%s", row.limits, got, row.want)
		}
	}
}

// A denied response has the same time in RateLimit as in Retry-After.
func TestDraft07ResetIsRetryAfter(t *testing.T) {
	for _, limit := range []core.Limit{
		core.PerMinute(7), core.PerHour(3), {Quota: 5, Window: time.Minute, Algorithm: core.TokenBucket}, {Quota: 3, Window: time.Minute, Algorithm: core.SlidingLog},
		{Quota: 2, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: 90 * time.Second}},
	} {
		clock := newClock()
		c := oneRule(limit)
		c.Headers = core.HeadersDraft07
		l := newLimiter(t, c, clock)
		denied := 0
		for range 20 {
			d := l.Check(&request{})
			text := headerText(d)
			if d.Allowed {
				if want := fmt.Sprintf("remaining=%d, reset=%d\n", d.Remaining, (d.ResetAfter.Truncate(time.Millisecond)+time.Second-1)/time.Second); !strings.Contains(text, want) {
					t.Errorf("%v, allowed: %s, want %s", limit, text, want)
				}
				clock.advance(700 * time.Millisecond)
				continue
			}
			denied++
			_, reset, _ := strings.Cut(text, "remaining=0, reset=")
			reset, _, _ = strings.Cut(reset, "\n")
			_, retry, _ := strings.Cut(text, "Retry-After: ")
			if reset == "" || reset+"\n" != retry {
				t.Errorf("%v, denied: %s", limit, text)
			}
		}
		if denied == 0 {
			t.Errorf("%v denied nothing", limit)
		}
	}
}

func TestHeadersThatCannotBeInOneResponse(t *testing.T) {
	for _, row := range []struct {
		all        core.Headers
		each       [3]core.Headers
		ok         bool
		mustBeSaid string
	}{
		{all: core.HeadersDraft07 | core.HeadersDraft10, mustBeSaid: "cannot be joined"},
		{each: [3]core.Headers{0, core.HeadersDraft07, core.HeadersOff}, mustBeSaid: `Rules[1].Headers: HeadersDraft07 and HeadersDraft10, the default, in one limiter (rule "r0" has the other one)`},
		{all: core.HeadersDraft07, each: [3]core.Headers{0, core.HeadersOff, core.HeadersDraft10 | core.HeadersXEpoch}, mustBeSaid: "Rules[2].Headers"},
		{each: [3]core.Headers{core.HeadersXSeconds, core.HeadersDraft07 | core.HeadersXSeconds, core.HeadersOff}, ok: true},
		{all: core.HeadersDraft07, ok: true},
	} {
		c := core.Config{Headers: row.all, Rules: numbered(3)}
		for i := range c.Rules {
			c.Rules[i].Headers = row.each[i]
		}
		_, err := core.New(c)
		if row.ok != (err == nil) || !row.ok && (!errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), row.mustBeSaid)) {
			t.Errorf("%#x %#x: %v, want %q", row.all, row.each, err, row.mustBeSaid)
		}
	}
}

// A rule with other headers has no item, and no lines if it does not decide.
func TestDraft07OfSomeRules(t *testing.T) {
	rules := numbered(3)
	rules[0].Headers, rules[1].Headers, rules[2].Headers = core.HeadersOff, core.HeadersDraft07, core.HeadersXSeconds
	rules[0].Limits = []core.Limit{core.PerMinute(9)}
	rules[1].Limits = []core.Limit{core.PerMinute(5)} // it decides
	got := headerText(newLimiter(t, core.Config{Rules: rules}, newClock()).Check(&request{}))
	if want := "Ratelimit-Policy: 5;w=60\nRatelimit: limit=5, remaining=4, reset=60\n"; got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}
