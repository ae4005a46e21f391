package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

func headerText(d core.Decision) string {
	var b strings.Builder
	for _, h := range d.AppendHeaders(make([]core.Header, 1))[1:] {
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
		{3, 1, 3*time.Second + time.Microsecond, "q=1"}, // a third of a microsecond more than 1 s
		{0, 5, time.Minute, "q=0;w=60"},
		{1, core.MaxQuota, time.Second, "q=2147483647;w=2147483647"},
		{core.MaxQuota, core.MaxQuota, core.MaxWindow, "q=2147483647;w=31622400"},
	} {
		l := newLimiter(t, oneRule(core.Limit{Name: "b", Quota: row.quota, Burst: row.burst, Window: row.window, Algorithm: core.TokenBucket}), newClock())
		d := l.Check(&request{})
		if got, want := headerText(d), "Ratelimit-Policy: \"b\";"+row.want+"\n"; !strings.HasPrefix(got, want) {
			t.Errorf("%d of burst %d in %v:\n%swant\n%s", row.quota, row.burst, row.window, got, want)
		}
		if row.quota == 0 && d.Limit().Capacity() != 0 {
			t.Errorf("a quota of 0 has a capacity of %d", d.Limit().Capacity())
		}
	}
}

// The lists have the limits of the rules with HeadersDraft10. The other headers are those of the rule that
// decides.
func TestHeadersOfRules(t *testing.T) {
	for _, row := range []struct {
		headers [3]core.Headers // the third rule decides
		want    string
	}{
		{[3]core.Headers{0, core.HeadersOff, core.HeadersXSeconds | core.HeadersDraft10}, "Ratelimit-Policy: \"r0\";q=10;w=60, \"r2\";q=5;w=60\nRatelimit: \"r0\";r=9;t=60, \"r2\";r=4;t=60\n" +
			"X-Ratelimit-Limit: 5\nX-Ratelimit-Remaining: 4\nX-Ratelimit-Reset: 60\n"},
		{[3]core.Headers{core.HeadersOff, core.HeadersXSeconds, core.HeadersDraft10}, "Ratelimit-Policy: \"r2\";q=5;w=60\nRatelimit: \"r2\";r=4;t=60\n"},
		{[3]core.Headers{core.HeadersOff, core.HeadersXSeconds, core.HeadersDraft07}, "Ratelimit-Policy: 5;w=60\nRatelimit: limit=5, remaining=4, reset=60\n"},
		{[3]core.Headers{0, core.HeadersOff, 0}, "Ratelimit-Policy: \"r0\";q=10;w=60, \"r2\";q=5;w=60\nRatelimit: \"r0\";r=9;t=60, \"r2\";r=4;t=60\n"},
		{[3]core.Headers{core.HeadersOff, core.HeadersOff, core.HeadersOff}, ""},
	} {
		rules := numbered(3)
		rules[2].Limits = []core.Limit{core.PerMinute(5)}
		for i := range rules {
			rules[i].Headers = row.headers[i]
		}
		if got := headerText(newLimiter(t, core.Config{Rules: rules}, newClock()).Check(&request{})); got != row.want {
			t.Errorf("%#x: %s, want\n%s", row.headers, got, row.want)
		}
	}
}

// The policy has the limits that applied.
func TestThePolicyOfALimiterOfWhichOneRuleApplies(t *testing.T) {
	rules := numbered(2)
	rules[0].Key = orSkip
	l := newLimiter(t, core.Config{Rules: rules}, newClock())
	for method, want := range map[string]string{"": `"r1";q=10;w=60`, "GET": `"r0";q=10;w=60, "r1";q=10;w=60`} {
		if got := headerText(l.Check(&request{method: method})); !strings.HasPrefix(got, "Ratelimit-Policy: "+want+"\n") {
			t.Errorf("%q: %v, want %s", method, got, want)
		}
	}
}

// A decision that no limit was applied for has no headers of limits.
func TestADecisionWithoutALimitHasNoRateHeaders(t *testing.T) {
	for _, headers := range []core.Headers{core.HeadersDraft10, core.HeadersDraft07, core.HeadersDraft03, core.HeadersXSeconds} {
		for err, want := range map[error]string{core.SkipRule: "", core.ErrBadRequest: "Cache-Control: no-store\n", errFault: "Cache-Control: no-store\nRetry-After: 1\n"} {
			l := newLimiter(t, core.Config{Headers: headers, Log: new(lines).logger(), Rules: []core.Rule{{Key: fails(err), Limits: []core.Limit{core.PerMinute(5)}}}}, newClock())
			if got := headerText(l.Check(&request{})); got != want {
				t.Errorf("headers %#x, %v: %q, want %q", headers, err, got, want)
			}
		}
	}
}

// No time helps a request that costs more than the quota. The field then has the
// time until more is available, as for a request that is allowed.
func TestTheRateLimitFieldOfACostAboveTheQuota(t *testing.T) {
	l := newLimiter(t, oneRule(fixed(5, time.Minute)), newClock())
	for used, want := range []string{`"r";r=5;t=0`, `"r";r=4;t=60`} {
		d, err := l.Take(t.Context(), 6, core.Hit{Rule: "r", Key: "k"})
		if err != nil || d.RetryAfter != core.Never {
			t.Fatal(d, err)
		}
		if got := headerText(d); !strings.Contains(got, "Ratelimit: "+want+"\n") || strings.Contains(got, "Retry-After") {
			t.Errorf("after %d hits:\n%swant %s", used, got, want)
		}
		l.Check(&request{})
	}
	l = newLimiter(t, oneRule(bucket(10, 10*time.Second)), newClock())
	_, _ = l.Take(t.Context(), 10, core.Hit{Rule: "r", Key: "k"})
	if d, err := l.Take(t.Context(), 2, core.Hit{Rule: "r", Key: "k"}); err != nil || !strings.Contains(headerText(d), "Ratelimit: \"r\";r=0;t=2\nCache-Control: no-store\nRetry-After: 2\n") {
		t.Errorf("%v, %s", err, headerText(d))
	}
}

// A Checker around a limiter may deny a request that the limiter has allowed.
func TestRetryAfterOfADecisionThatAnotherCheckerHasChanged(t *testing.T) {
	d := newLimiter(t, oneRule(fixed(5, time.Minute)), newClock()).Check(&request{})
	d.Allowed, d.Reason = false, core.ReasonOverLimit
	for wait, want := range map[time.Duration]string{7 * time.Second: "7", 0: "1"} {
		d.RetryAfter = wait
		if got := headerText(d); !strings.Contains(got, "Ratelimit: \"r\";r=4;t=60\n") || !strings.Contains(got, "Retry-After: "+want+"\n") {
			t.Error(got)
		}
	}
	if den := d.Denial(&request{}); den.Status != 429 || strings.Contains(string(den.Body), `"r"`) {
		t.Errorf("%d %s", den.Status, den.Body)
	}
}

// Retry-After is that of the limit that denies, which need not be the last in RateLimit.
func TestRetryAfterOfTheFirstOfTwoLimits(t *testing.T) {
	l := newLimiter(t, oneRule(fixed(1, time.Minute), fixed(5, time.Hour)), newClock())
	l.Check(&request{})
	d := l.Check(&request{})
	if got := headerText(d); !strings.Contains(got, "Ratelimit: \"r-1m\";r=0;t=60, \"r-1h\";r=4;t=3600\n") || !strings.Contains(got, "Retry-After: 60\n") {
		t.Error(got)
	}
	for s := range d.Limits() {
		if denied := s.Limit.Name == "r-1m"; s.Allowed == denied || (s.RetryAfter == time.Minute) != denied || s.Rule != "r" {
			t.Errorf("%+v", s)
		}
	}
}

// What a denied client reads is true.
func TestRetryAfterIsTrue(t *testing.T) {
	for _, limit := range []core.Limit{fixed(3, 100*time.Millisecond), {Quota: 3, Window: 10 * time.Second}, {Quota: 3, Window: 10 * time.Second, Algorithm: core.TokenBucket}} {
		c := newClock()
		l := newLimiter(t, oneRule(limit), c)
		var d core.Decision
		for d = l.Check(&request{}); d.Allowed; d = l.Check(&request{}) {
		}
		text := headerText(d)
		m := regexp.MustCompile(`(?m)^Retry-After: ([1-9][0-9]*)$`).FindStringSubmatch(text)
		if m == nil || !strings.Contains(text, "Cache-Control: no-store") || !strings.Contains(text, ";r=0;") {
			t.Fatalf("%v: %s", limit, text)
		}
		seconds, _ := time.ParseDuration(m[1] + "s")
		if c.advance(seconds - time.Second); seconds > time.Second && l.Check(&request{}).Allowed {
			t.Errorf("%v: allowed a second before Retry-After", limit)
		}
		c.advance(time.Second + time.Millisecond) // what the header leaves out
		if !l.Check(&request{}).Allowed {
			t.Errorf("%v: denied at Retry-After, %v", limit, seconds)
		}
	}
}

// The fields are lists of strings with parameters (RFC 9651).
func TestFieldsAreStructured(t *testing.T) {
	item := `"[A-Za-z0-9_.-]+"(;[a-z]+=(0|[1-9][0-9]{0,14}))+`
	list := regexp.MustCompile(`^` + item + `(, ` + item + `)*$`)
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "a", Key: static(""), Limits: []core.Limit{core.PerSecond(core.MaxQuota), {Quota: 1, Window: core.MaxWindow, Algorithm: core.TokenBucket, Burst: 90}}},
		{Name: "b", Key: static(""), Limits: []core.Limit{{Quota: 5, Window: 2 * time.Millisecond}}},
	}}, newClock())
	for range 3 {
		for _, h := range l.Check(&request{}).AppendHeaders(nil) {
			if !list.MatchString(h.Value) {
				t.Errorf("%s: %s", h.Name, h.Value)
			}
		}
	}
}

// No item without w is allowed, and no empty list.
func TestDraft07LeavesOutWindowsThatAreNoWholeSeconds(t *testing.T) {
	for limit, want := range map[core.Limit]string{
		fixed(2, 1500*time.Millisecond):                                        "Ratelimit: limit=2, remaining=1, reset=2\n",
		{Quota: 0, Burst: 7, Window: time.Minute, Algorithm: core.TokenBucket}: "Ratelimit-Policy: 0;w=60\nRatelimit: limit=0, remaining=0, reset=0\nCache-Control: no-store\n",
	} {
		c := oneRule(limit)
		c.Headers = core.HeadersDraft07
		if got := headerText(newLimiter(t, c, newClock()).Check(&request{})); got != want {
			t.Errorf("%v:\n%swant\n%s", limit, got, want)
		}
	}
}

// A denied response has the same time in RateLimit as in Retry-After.
func TestDraft07ResetIsRetryAfter(t *testing.T) {
	lockout := fixed(2, time.Minute)
	lockout.Lockout = core.Lockout{First: 90 * time.Second}
	for _, limit := range append(every, lockout) {
		limit.Quota = 3
		clock, c := newClock(), oneRule(limit)
		c.Headers = core.HeadersDraft07
		l := newLimiter(t, c, clock)
		for {
			d := l.Check(&request{})
			text := headerText(d)
			if d.Allowed {
				if want := fmt.Sprintf("remaining=%d, reset=%d\n", d.Remaining, (d.ResetAfter.Truncate(time.Millisecond)+time.Second-1)/time.Second); !strings.Contains(text, want) {
					t.Errorf("%v, allowed: %s, want %s", limit, text, want)
				}
				clock.advance(700 * time.Millisecond)
				continue
			}
			_, reset, _ := strings.Cut(text, "remaining=0, reset=")
			reset, _, _ = strings.Cut(reset, "\n")
			if _, retry, _ := strings.Cut(text, "Retry-After: "); reset == "" || reset+"\n" != retry {
				t.Errorf("%v, denied: %s", limit, text)
			}
			break
		}
	}
}

func TestHeadersThatCannotBeInOneResponse(t *testing.T) {
	for _, row := range []struct {
		all   core.Headers
		each  [3]core.Headers
		wrong string
	}{
		{all: core.HeadersDraft07 | core.HeadersDraft10, wrong: "cannot be joined"},
		{each: [3]core.Headers{0, core.HeadersDraft07, core.HeadersOff}, wrong: `Rules[1].Headers: HeadersDraft07 and HeadersDraft10, the default, in one limiter (rule "r0" has the other one)`},
		{all: core.HeadersDraft07, each: [3]core.Headers{0, core.HeadersOff, core.HeadersDraft10 | core.HeadersXEpoch}, wrong: "Rules[2].Headers"},
		{each: [3]core.Headers{core.HeadersXSeconds, core.HeadersDraft07 | core.HeadersXSeconds, core.HeadersOff}},
		{each: [3]core.Headers{0, 200, 0}, wrong: `Rules[1] ("r1").Headers`},
		{all: core.HeadersDraft07},
	} {
		c := core.Config{Headers: row.all, Rules: numbered(3)}
		for i := range c.Rules {
			c.Rules[i].Headers = row.each[i]
		}
		_, err := core.New(c)
		if (row.wrong == "") != (err == nil) || err != nil && (!errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), row.wrong)) {
			t.Errorf("%#x %#x: %v, want %q", row.all, row.each, err, row.wrong)
		}
	}
}

func TestTheStandardDenial(t *testing.T) {
	l := newLimiter(t, oneRule(fixed(1, time.Minute), fixed(1, time.Hour), core.PerMinute(9)), newClock())
	if den := l.Check(&request{}).Denial(&request{}); den.Status != 429 {
		t.Errorf("of a decision that allows: %d", den.Status)
	}
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
		"violated-policies": []any{"r-1m", "r-1h"},
	}
	if den.Status != 429 || !reflect.DeepEqual(body, want) || !slices.Equal(den.Header, []core.Header{{Name: "Content-Type", Value: "application/problem+json"}}) {
		t.Errorf("%d %v %v, want %v", den.Status, den.Header, body, want)
	}
}

// A hook may answer with every status that HTTP has for an end of a request.
func TestTheStatusOfADenialFromAHook(t *testing.T) {
	status, config := 0, oneRule(core.PerMinute(0))
	config.Hooks = hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { return core.Denial{Status: status} }}
	l := newLimiter(t, config, newClock())
	for given, want := range map[int]int{0: 429, 199: 429, 200: 200, 403: 403, 599: 599, 600: 429, -1: 429} {
		status = given
		if got := l.Deny(&request{}, l.Check(&request{})).Status; got != want {
			t.Errorf("the hook's status %d: %d, want %d", given, got, want)
		}
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
