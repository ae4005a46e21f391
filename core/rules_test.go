package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func TestOnlySelectedRulesAreAsked(t *testing.T) {
	const rules = 100
	asked := make([]int, rules)
	c := core.Config{Rules: numbered(rules)}
	for i := range c.Rules {
		c.Rules[i].Key = func(dst []byte, _ core.Request) ([]byte, error) {
			asked[i]++
			return append(dst, 'k'), nil
		}
	}
	chosen := []int{3, 70, 99}
	c.RulesFor = func(dst []int, _ core.Request) ([]int, error) { return append(dst, chosen...), nil }
	l := newLimiter(t, c, newClock())
	var names []string
	for s := range l.Check(&request{}).Limits() {
		names = append(names, s.Rule)
	}
	if !slices.Equal(names, []string{"r3", "r70", "r99"}) {
		t.Errorf("rules %v", names)
	}
	for i, n := range asked {
		if (n > 0) != slices.Contains(chosen, i) {
			t.Errorf("rule %d was asked %d times", i, n)
		}
	}
}

func TestRulesFor(t *testing.T) {
	for name, row := range map[string]struct {
		choice []int
		err    error
		want   core.Reason
	}{
		"one":           {[]int{1}, nil, core.ReasonWithinLimits},
		"none":          {nil, nil, core.ReasonNoRule},
		"SkipRule":      {[]int{1}, core.SkipRule, core.ReasonNoRule},
		"a bad request": {nil, core.ErrBadRequest, core.ReasonBadRequest},
		"a fault":       {nil, errFault, core.ReasonFailed},
		"out of range":  {[]int{3}, nil, core.ReasonFailed},
		"negative":      {[]int{-1}, nil, core.ReasonFailed},
		"descending":    {[]int{2, 1}, nil, core.ReasonFailed},
		"twice":         {[]int{1, 1}, nil, core.ReasonFailed},
	} {
		l := newLimiter(t, core.Config{Log: new(lines).logger(), Rules: numbered(3), RulesFor: func(dst []int, _ core.Request) ([]int, error) {
			return append(dst, row.choice...), row.err
		}}, newClock())
		if d := l.Check(&request{}); d.Reason != row.want || d.Allowed != (row.want == core.ReasonWithinLimits || row.want == core.ReasonNoRule) {
			t.Errorf("%s: %v, %v: want %v", name, d, d.Err, row.want)
		}
	}
}

// A RulesFor may return a slice of its own: nothing is written into it.
func TestASliceOfRulesForStaysAsItIs(t *testing.T) {
	own := []int{1, 2}
	l := newLimiter(t, core.Config{Rules: numbered(3), RulesFor: func(dst []int, r core.Request) ([]int, error) {
		if r.Method() == "POST" {
			return own, nil
		}
		return append(dst, 0), nil
	}}, newClock())
	for range 10 { // the race detector makes a pool forget sessions
		l.Check(&request{method: "POST"})
		l.Check(&request{method: "GET"})
	}
	if !slices.Equal(own, []int{1, 2}) {
		t.Errorf("the slice has become %v", own)
	}
}

func TestRulesForMayReadTheBody(t *testing.T) {
	rules := numbered(4)
	rules[2].Key = bodyKey
	l := newLimiter(t, core.Config{Rules: rules, RulesFor: func(dst []int, r core.Request) ([]int, error) {
		b, err := r.Body(10)
		for _, c := range b {
			dst = append(dst, int(c-'0'))
		}
		return dst, err
	}}, newClock())
	if d := l.Check(&request{body: "023"}); !d.Allowed || d.Reason != core.ReasonWithinLimits {
		t.Fatalf("%v, %v", d, d.Err)
	}
	for rule, want := range map[string]int64{"r0/k": 9, "r1/k": 10, "r2/023": 9, "r3/k": 9} {
		if got := left(t, l, rule[:2], rule[3:]); got != want {
			t.Errorf("%s: %d left, want %d", rule, got, want)
		}
	}
}

func TestARuleCanHaveItsOwnCost(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "requests", Key: static("k"), Limits: []core.Limit{core.PerMinute(10)}},
		{Name: "tokens", Key: static("k"), Limits: []core.Limit{core.PerMinute(1000)}, Cost: func(r core.Request) (int64, error) {
			b, err := r.Body(100)
			return int64(len(b)) * 100, err
		}},
	}}, newClock())
	want := func(requests, tokens int64) {
		t.Helper()
		if a, b := left(t, l, "requests", "k"), left(t, l, "tokens", "k"); a != requests || b != tokens {
			t.Errorf("%d and %d left, want %d and %d", a, b, requests, tokens)
		}
	}
	d := l.Check(&request{body: "abc"})
	want(9, 700)
	if d := l.Check(&request{body: "12345678"}); d.Allowed || d.Rule() != "tokens" || d.Cost != 800 {
		t.Errorf("%v (cost %d): want it denied for its 800 tokens", d, d.Cost)
	}
	want(9, 700)
	if err := l.Adjust(t.Context(), d, 0); err != nil {
		t.Fatal(err)
	}
	want(10, 1000)
}

func TestErrorsOfARulesCost(t *testing.T) {
	for _, row := range []struct {
		cost   int64
		err    error
		want   core.Reason
		others int64 // left of the other rule
		own    int64 // left of the rule with the cost
	}{
		{0, nil, core.ReasonWithinLimits, 9, 10},
		{-1, nil, core.ReasonFailed, 10, 10},
		{0, errFault, core.ReasonFailed, 10, 10},
		// A bad request costs one hit, whatever else the function returns.
		{0, core.ErrBadRequest, core.ReasonBadRequest, 9, 9},
		{7, core.ErrBadRequest, core.ReasonBadRequest, 9, 9},
	} {
		rules := numbered(2)
		rules[1].Cost = func(core.Request) (int64, error) { return row.cost, row.err }
		l := newLimiter(t, core.Config{Log: new(lines).logger(), Rules: rules}, newClock())
		d := l.Check(&request{})
		if a, b := left(t, l, "r0", "k"), left(t, l, "r1", "k"); d.Reason != row.want || a != row.others || b != row.own || d.Err != nil && !strings.HasPrefix(d.Err.Error(), `cost of rule "r1": `) {
			t.Errorf("cost %d, error %v: %v (%v), %d and %d left", row.cost, row.err, d.Reason, d.Err, a, b)
		}
	}
}

// planned is a limiter whose key comes from the method, and whose quota comes from the header Plan.
func planned(t testing.TB, log *lines, limits ...core.Limit) *core.Limiter {
	config := core.Config{Name: "api", Log: log.logger(), Rules: []core.Rule{{Name: "plan", Limits: limits, Key: orSkip}}}
	config.Rules[0].Quota = func(r core.Request, l core.Limit) (int64, error) {
		switch plan := r.HeaderValues("Plan")[0]; plan {
		case "":
			return l.Quota, nil
		case "unlimited":
			return core.Unlimited, nil
		case "skip":
			return 0, core.SkipRule
		default:
			return strconv.ParseInt(plan, 10, 64)
		}
	}
	return newLimiter(t, config, newClock())
}

func of(key, plan string) *request {
	return &request{method: key, header: map[string][]string{"Plan": {plan}}}
}

// A new plan acts on the next request and keeps the count.
func TestANewQuotaKeepsTheCount(t *testing.T) {
	for _, limit := range every {
		limit.Quota = 3
		for _, limits := range [][]core.Limit{{limit}, {limit, core.PerMinute(3)}} {
			l, log := planned(t, new(lines), limits...), limit.Algorithm == core.SlidingLog
			for _, step := range []struct {
				plan      string
				quota     int64
				allowed   bool
				remaining int64
			}{
				{"", 3, true, 2},
				{"10", 10, true, 8},
				{"10", 10, true, 7},
				{"", 3, false, 0},
				{"2", 2, false, 0},
				{"0", 0, false, 0},
				{"unlimited", core.Unlimited, true, core.Unlimited},
				{"10", 10, true, 5},
			} {
				d := l.Check(of("k", step.plan))
				// A log that is full keeps its newest hits.
				if ok := d.Remaining == step.remaining || log && step.remaining == 5; d.Allowed != step.allowed || !ok || d.Limit().Quota != step.quota {
					t.Errorf("%v, plan %q: allowed %v with %d left of %d, want %v with %d of %d", limits, step.plan, d.Allowed, d.Remaining, d.Limit().Quota, step.allowed, step.remaining, step.quota)
				}
			}
		}
	}
}

func TestTheBurstChangesInProportion(t *testing.T) {
	l := planned(t, new(lines), core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 4})
	for plan, burst := range map[string]int64{"10": 4, "5": 2, "7": 2, "1": 1, "100": 40} {
		d := l.Check(of("key of "+plan, plan))
		if !d.Allowed || d.Remaining != burst-1 || d.Limit().Capacity() != burst {
			t.Errorf("quota %s: %d left of %d, want a burst of %d", plan, d.Remaining, d.Limit().Capacity(), burst)
		}
	}
	for plan, capacity := range map[string]int64{"0": 0, "unlimited": core.Unlimited} {
		if d := l.Check(of(plan, plan)); d.Limit().Burst != 0 || d.Limit().Capacity() != capacity || d.Allowed != (capacity > 0) || (d.RetryAfter == core.Never) == d.Allowed {
			t.Errorf("quota %s: %v", plan, d)
		}
	}
}

// What is left of an unlimited limit decides nothing while another limit is there.
func TestAnUnlimitedLimitDoesNotDecide(t *testing.T) {
	l := newLimiter(t, oneRule(core.PerMinute(1), core.PerHour(100)), newClock())
	hit := core.Hit{Rule: "r", Key: "k", Quotas: []int64{core.Unlimited, 100}}
	for i := range int64(3) {
		d, err := l.Take(t.Context(), 1, hit)
		if err != nil || !d.Allowed || d.Limit().Window != time.Hour || d.Remaining != 99-i {
			t.Fatalf("take %d: %v, %v", i, d, err)
		}
	}
	hit.Quotas = []int64{101, core.Unlimited}
	if d, err := l.Take(t.Context(), 1, hit); err != nil || d.Limit().Window != time.Minute || d.Remaining != 97 {
		t.Errorf("%v, %v", d, err)
	}
	hit.Quotas = []int64{core.Unlimited, core.Unlimited}
	want := `unlimited of unlimited left for rule "r", limit "r-1m" (unlimited per 1m)`
	if d, err := l.Take(t.Context(), 1, hit); err != nil || !strings.Contains(d.String(), want) || d.MoreAfter+slices.Collect(d.Limits())[1].MoreAfter != 0 {
		t.Errorf("%v, %v: want %s", d, err, want)
	}
}

func TestAQuotaThatFailsDeniesAndChargesNothing(t *testing.T) {
	for plan, want := range map[string]string{
		"gold":       "invalid syntax",
		"-1":         "-1: must be from 0 to 2147483647",
		"2147483648": "2147483648: must be from 0 to 2147483647",
		"skip":       "core.Unlimited, or SkipRule from the rule's Key",
	} {
		log := new(lines)
		l := planned(t, log, core.PerMinute(5))
		d := l.Check(of("k", plan))
		text := fmt.Sprint(d.Err)
		if d.Allowed || d.Reason != core.ReasonFailed || d.Status() != 503 || !strings.Contains(text, want) || !strings.HasPrefix(text, `quota of rule "plan": limit "plan": `) {
			t.Errorf("plan %s: %v, error %s, want one with %q", plan, d.Reason, text, want)
		}
		if strings.Contains(want, "must be") != errors.Is(d.Err, core.ErrConfig) || !strings.Contains(strings.Join(log.take(), " "), want) {
			t.Errorf("plan %s: %v", plan, d.Err)
		}
		if got := left(t, l, "plan", "k"); got != 5 {
			t.Errorf("plan %s: %d left, want 5", plan, got)
		}
	}
}

func TestQuotasOfAHitAreChecked(t *testing.T) {
	l := newLimiter(t, core.Config{Name: "api", Rules: []core.Rule{
		{Name: "log", Limits: []core.Limit{{Quota: 5, Window: time.Minute, Algorithm: core.SlidingLog}}},
		{Name: "two", Limits: []core.Limit{core.PerMinute(1), core.PerHour(100)}},
	}}, newClock())
	for _, row := range []struct {
		hit  core.Hit
		want string // "": they are right
	}{
		{core.Hit{Rule: "log", Quotas: []int64{core.MaxLogQuota}}, ""},
		{core.Hit{Rule: "two", Quotas: []int64{core.MaxQuota, core.MaxQuota}}, ""},
		{core.Hit{Rule: "log", Quotas: []int64{core.MaxLogQuota + 1}}, `limiter "api", rule "log": Quotas[0]: 10001: must be from 0 to 10000`},
		{core.Hit{Rule: "two", Quotas: []int64{1, -1}}, `rule "two": Quotas[1]: -1: must be from 0`},
		{core.Hit{Rule: "two", Quotas: []int64{1, 2, 3}}, `Quotas: 3 of them: want one for each of the rule's 2 limits`},
		{core.Hit{Rule: "two", Quotas: []int64{}}, `Quotas: 0 of them`},
	} {
		for name, take := range map[string]func(context.Context, int64, ...core.Hit) (core.Decision, error){"Take": l.Take, "Peek": l.Peek} {
			d, err := take(t.Context(), 6, row.hit)
			if row.want == "" {
				if err != nil || !d.Allowed {
					t.Errorf("%s(%v): %v, %v", name, row.hit, d, err)
				}
			} else if !errors.Is(err, core.ErrConfig) || d.Allowed || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s(%v): %v, %v, want an error with %q", name, row.hit, d, err, row.want)
			}
		}
	}
}

// A decision with quotas of its own is refunded and adjusted with them.
func TestADecisionIsSettledWithItsQuotas(t *testing.T) {
	for _, limits := range [][]core.Limit{{bucket(2, time.Minute)}, {core.PerMinute(2)}, {bucket(2, time.Minute), core.PerMinute(3)}} {
		l := newLimiter(t, oneRule(limits...), newClock())
		hit := core.Hit{Rule: "r", Key: "k", Quotas: []int64{60, 60}[:len(limits)]}
		for _, cost := range []int64{0, 60} {
			d, err := l.Take(t.Context(), 20, hit)
			if err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			if err := l.Adjust(t.Context(), d, cost); err != nil {
				t.Fatal(err)
			}
			d, _ = l.Peek(t.Context(), 1, hit)
			if d.Remaining != 60-cost || limits[0].Algorithm == core.TokenBucket && len(limits) == 1 && cost > 0 && d.RetryAfter != time.Second {
				t.Errorf("%v, adjusted to %d: %d left, a wait of %v", limits, cost, d.Remaining, d.RetryAfter)
			}
		}
	}
}

func TestAQuotaThatReadsTheBody(t *testing.T) {
	config := oneRule(core.PerHour(1))
	config.Rules[0].Quota = func(r core.Request, _ core.Limit) (int64, error) {
		b, err := r.Body(10)
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(string(b), 10, 64)
	}
	l := newLimiter(t, config, newClock())
	for i := range int64(3) {
		if d := l.Check(&request{body: "2"}); d.Allowed != (i < 2) || d.Err != nil {
			t.Errorf("request %d: %v, %v", i, d, d.Err)
		}
	}
}

// Headers have the quota of the request, and leave out limits that are unlimited for it. A hit
// without quotas beside one with some has its limits' own.
func TestHeadersOfQuotas(t *testing.T) {
	a, b := core.Hit{Rule: "a"}, core.Hit{Rule: "b"}
	with := func(h core.Hit, quotas ...int64) core.Hit { h.Quotas = quotas; return h }
	for _, row := range []struct {
		headers core.Headers
		hits    []core.Hit
		want    string
	}{
		{0, []core.Hit{with(a, 50)}, "Ratelimit-Policy: \"a\";q=50;w=60\nRatelimit: \"a\";r=49;t=60\n"},
		{0, []core.Hit{with(a, core.Unlimited)}, ""},
		{0, []core.Hit{with(b, 7, 8)}, "Ratelimit-Policy: \"b-1m\";q=7;w=60, \"b-1h\";q=8;w=3600\nRatelimit: \"b-1m\";r=6;t=60, \"b-1h\";r=7;t=3600\n"},
		{0, []core.Hit{with(b, core.Unlimited, 7)}, "Ratelimit-Policy: \"b-1h\";q=7;w=3600\nRatelimit: \"b-1h\";r=6;t=3600\n"},
		{0, []core.Hit{with(a, 50), b}, "Ratelimit-Policy: \"a\";q=50;w=60, \"b-1m\";q=6;w=60, \"b-1h\";q=9;w=3600\nRatelimit: \"a\";r=49;t=60, \"b-1m\";r=5;t=60, \"b-1h\";r=8;t=3600\n"},
		{core.HeadersDraft07, []core.Hit{with(b, core.Unlimited, core.Unlimited)}, ""},
		{core.HeadersXSeconds, []core.Hit{with(b, core.Unlimited, core.Unlimited)}, ""},
		{core.HeadersDraft07, []core.Hit{with(b, core.Unlimited, 7)}, "Ratelimit-Policy: 7;w=3600\nRatelimit: limit=7, remaining=6, reset=3600\n"},
	} {
		l := newLimiter(t, core.Config{Headers: row.headers, Rules: []core.Rule{
			{Name: "a", Limits: []core.Limit{fixed(5, time.Minute)}},
			{Name: "b", Limits: []core.Limit{fixed(6, time.Minute), fixed(9, time.Hour)}},
		}}, newClock())
		d, err := l.Take(t.Context(), 1, row.hits...)
		if got := headerText(d); err != nil || got != row.want {
			t.Errorf("headers %#x, %v:\n%swant\n%s", row.headers, row.hits, got, row.want)
		}
	}
}

func ExampleRule_quota() {
	plans := map[string]int64{"alice": 5, "bob": core.Unlimited}
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "customer",
		Key: func(dst []byte, r core.Request) ([]byte, error) {
			return append(dst, r.HeaderValues("Customer")[0]...), nil
		},
		Limits: []core.Limit{core.PerMinute(1)}, // of a customer without a plan
		Quota: func(r core.Request, l core.Limit) (int64, error) {
			if quota, ok := plans[r.HeaderValues("Customer")[0]]; ok {
				return quota, nil
			}
			return l.Quota, nil
		},
	}}}))
	for _, customer := range []string{"alice", "bob", "carol"} {
		allowed := 0
		for range 10 {
			if limiter.Check(&request{header: map[string][]string{"Customer": {customer}}}).Allowed {
				allowed++
			}
		}
		fmt.Println(customer, allowed)
	}
	// Output:
	// alice 5
	// bob 10
	// carol 1
}
