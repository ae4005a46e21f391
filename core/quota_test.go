package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// planned is a limiter whose quotas come from the header Plan, one number for each limit, and
// whose key comes from the header Key.
func planned(t testing.TB, log *lines, c *clock, limits ...core.Limit) *core.Limiter {
	return newLimiter(t, core.Config{Name: "api", Log: log.logger(), Rules: []core.Rule{{
		Name: "plan", Limits: limits,
		Key: func(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.HeaderValues("Key")[0]...), nil },
		Quota: func(r core.Request, l core.Limit) (int64, error) {
			plan := r.HeaderValues("Plan")
			switch {
			case len(plan) == 0:
				return l.Quota, nil
			case plan[0] == "unlimited":
				return core.Unlimited, nil
			}
			return strconv.ParseInt(plan[0], 10, 64)
		},
	}}}, c)
}

func of(key string, plan ...string) *request {
	return &request{header: map[string][]string{"Key": {key}, "Plan": plan}}
}

// A new plan acts on the next request and keeps the count.
func TestANewQuotaKeepsTheCount(t *testing.T) {
	for _, limits := range [][]core.Limit{
		{core.PerHour(3)},
		{{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow}},
		{{Quota: 3, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute}},
		{{Quota: 3, Window: time.Hour, Algorithm: core.SlidingLog}},
		{{Quota: 3, Window: time.Hour, Algorithm: core.TokenBucket}},
		{core.PerHour(3), core.PerMinute(3)},
	} {
		l := planned(t, new(lines), newClock(), limits...)
		step := func(plan string, allowed bool, remaining int64) {
			t.Helper()
			r := of("k")
			if plan != "" {
				r = of("k", plan)
			}
			d := l.Check(r)
			if d.Allowed != allowed || d.Remaining != remaining {
				t.Errorf("%v, plan %q: allowed %v with %d left, want %v with %d", limits, plan, d.Allowed, d.Remaining, allowed, remaining)
			}
			want := int64(3)
			if plan == "unlimited" {
				want = core.Unlimited
			} else if plan != "" {
				want, _ = strconv.ParseInt(plan, 10, 64)
			}
			if d.Limit().Quota != want {
				t.Errorf("%v, plan %q: the decision's quota is %d", limits, plan, d.Limit().Quota)
			}
		}
		step("", true, 2)
		step("10", true, 8)
		step("10", true, 7)
		step("", false, 0)
		step("2", false, 0)
		step("0", false, 0)
		step("unlimited", true, core.Unlimited)
		if limits[0].Algorithm == core.SlidingLog {
			step("10", true, 6) // a log that is full keeps its newest hits
		} else {
			step("10", true, 5)
		}
	}
}

func TestTheBurstChangesInProportion(t *testing.T) {
	l := planned(t, new(lines), newClock(), core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 4})
	for plan, burst := range map[string]int64{"10": 4, "5": 2, "7": 2, "1": 1, "100": 40} {
		d := l.Check(of("key of "+plan, plan))
		if !d.Allowed || d.Remaining != burst-1 || d.Limit().Capacity() != burst {
			t.Errorf("quota %s: %d left of %d, want a burst of %d", plan, d.Remaining, d.Limit().Capacity(), burst)
		}
	}
	if d := l.Check(of("none", "0")); d.Allowed || d.RetryAfter != core.Never {
		t.Errorf("quota 0: %v", d)
	}
}

// Headers say the quota of the request, and leave out limits that are not there.
func TestHeadersSayTheQuotaOfTheRequest(t *testing.T) {
	for _, row := range []struct {
		limits []core.Limit
		plan   string
		want   string
	}{
		{[]core.Limit{core.PerMinute(5)}, "50", `Ratelimit-Policy: "plan";q=50;w=60 Ratelimit: "plan";r=49;t=60`},
		{[]core.Limit{core.PerMinute(5)}, "unlimited", ""},
		{[]core.Limit{core.PerMinute(5), core.PerHour(9)}, "7", `Ratelimit-Policy: "plan-1m";q=7;w=60, "plan-1h";q=7;w=3600 Ratelimit: "plan-1m";r=6;t=60, "plan-1h";r=6;t=3600`},
		{[]core.Limit{core.PerMinute(5), core.PerHour(9)}, "unlimited", ""},
	} {
		l := planned(t, new(lines), newClock(), row.limits...)
		d := l.Check(of("k", row.plan))
		var got []string
		for _, h := range d.AppendHeaders(nil) {
			got = append(got, h.Name+": "+h.Value)
		}
		if text := strings.Join(got, " "); text != row.want {
			t.Errorf("%v, plan %s: %s, want %s", row.limits, row.plan, text, row.want)
		}
	}
}

// What is left of an unlimited limit decides nothing while another limit is there.
func TestAnUnlimitedLimitDoesNotDecide(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "a", Limits: []core.Limit{core.PerMinute(1), core.PerHour(100)}},
	}}, newClock())
	hit := core.Hit{Rule: "a", Key: "k", Quotas: []int64{core.Unlimited, 100}}
	for i := range int64(3) {
		d, err := l.Take(t.Context(), 1, hit)
		if err != nil || !d.Allowed || d.Limit().Window != time.Hour || d.Remaining != 99-i {
			t.Fatalf("take %d: %v, %v", i, d, err)
		}
	}
}

func TestAQuotaThatFailsDeniesAndChargesNothing(t *testing.T) {
	for _, row := range []struct{ plan, want string }{
		{"gold", `invalid syntax`},
		{"-1", "-1: must be from 0 to 2147483647 for sliding_window, or core.Unlimited"},
		{"2147483648", "2147483648: must be from 0 to 2147483647 for sliding_window, or core.Unlimited"},
	} {
		log := new(lines)
		l := planned(t, log, newClock(), core.PerMinute(5))
		d := l.Check(of("k", row.plan))
		if d.Allowed || d.Reason != core.ReasonFailed || l.Deny(of("k"), d).Status != 503 || !strings.Contains(fmt.Sprint(d.Err), row.want) || !strings.Contains(fmt.Sprint(d.Err), `rule "plan"`) {
			t.Errorf("plan %s: %v, error %v, want one with %q", row.plan, d.Reason, d.Err, row.want)
		}
		if errors.Is(d.Err, core.ErrConfig) != (row.plan != "gold") {
			t.Errorf("plan %s: %v: wraps ErrConfig: %t", row.plan, d.Err, row.plan == "gold")
		}
		if text := strings.Join(log.take(), " "); !strings.Contains(text, row.want) {
			t.Errorf("plan %s: the log has %q", row.plan, text)
		}
		if got := left(t, l, "plan", "k"); got != 5 {
			t.Errorf("plan %s: %d left, want 5", row.plan, got)
		}
	}
}

func TestAQuotaFunctionCannotSkipItsRule(t *testing.T) {
	log := new(lines)
	l := newLimiter(t, core.Config{Log: log.logger(), Rules: []core.Rule{{
		Name: "plan", Key: func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, 'k'), nil }, Limits: []core.Limit{core.PerMinute(5)},
		Quota: func(core.Request, core.Limit) (int64, error) { return 0, core.SkipRule },
	}}}, newClock())
	if d := l.Check(&request{}); d.Allowed || d.Reason != core.ReasonFailed || !strings.Contains(strings.Join(log.take(), " "), "return core.Unlimited, or SkipRule from the rule's Key") {
		t.Errorf("%v, %v", d, d.Err)
	}
}

func TestQuotasOfAHitAreChecked(t *testing.T) {
	l := newLimiter(t, core.Config{Name: "api", Rules: []core.Rule{
		{Name: "log", Limits: []core.Limit{{Quota: 5, Window: time.Minute, Algorithm: core.SlidingLog}}},
		{Name: "one", Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "two", Limits: []core.Limit{core.PerMinute(1), core.PerHour(100)}},
	}}, newClock())
	l.Allow(t.Context(), core.Hit{Rule: "one"}) // the key is known
	for _, row := range []struct {
		hit  core.Hit
		want string
	}{
		{core.Hit{Rule: "one", Quotas: []int64{}}, `Quotas: 0 of them`},
		{core.Hit{Rule: "one", Quotas: []int64{1, 2}}, `Quotas: 2 of them`},
		{core.Hit{Rule: "one", Quotas: []int64{-1}}, `Quotas[0]: -1: must be from 0`},
		{core.Hit{Rule: "log", Quotas: []int64{core.MaxLogQuota + 1}}, `limiter "api", rule "log": Quotas[0]: 10001: must be from 0 to 10000 for sliding_log`},
		{core.Hit{Rule: "two", Quotas: []int64{1, -1}}, `rule "two": Quotas[1]: -1: must be from 0`},
		{core.Hit{Rule: "two", Quotas: []int64{1}}, `Quotas: 1 of them: want one for each of the rule's 2 limits`},
		{core.Hit{Rule: "two", Quotas: []int64{}}, `Quotas: 0 of them`},
	} {
		for name, take := range map[string]func(context.Context, int64, ...core.Hit) (core.Decision, error){"Take": l.Take, "Peek": l.Peek} {
			if d, err := take(t.Context(), 1, row.hit); !errors.Is(err, core.ErrConfig) || d.Allowed || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s(%v): %v, %v, want an error with %q", name, row.hit, d, err, row.want)
			}
		}
	}
}

// A decision with quotas of its own is refunded and adjusted with them.
func TestARefundOfATakeWithQuotas(t *testing.T) {
	for _, limits := range [][]core.Limit{{{Quota: 2, Window: time.Hour, Algorithm: core.TokenBucket}}, {core.PerHour(2)}, {core.PerHour(2), core.PerMinute(3)}} {
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: limits}}}, newClock())
		hit := core.Hit{Rule: "r", Key: "k", Quotas: []int64{50, 50}[:len(limits)]}
		d, err := l.Take(t.Context(), 20, hit)
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		if err := l.Adjust(t.Context(), d, 0); err != nil {
			t.Fatal(err)
		}
		if d, err = l.Take(t.Context(), 50, hit); err != nil || !d.Allowed || d.Remaining != 0 {
			t.Errorf("%v: after the refund: %v, %v", limits, d, err)
		}
	}
}

// A hit that is short and known takes a way of its own, with the same outcome.
func TestATakeWithAQuotaOnTheShortWay(t *testing.T) {
	c := newClock()
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(3)}}}}, c)
	for i := range int64(8) {
		d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k", Quotas: []int64{7}})
		want := max(0, 6-i)
		if err != nil || d.Allowed != (i < 7) || d.Remaining != want || d.Limit().Quota != 7 || d.Limit().Burst != 0 || d.Reason == core.ReasonOverLimit != (i == 7) {
			t.Errorf("take %d: %v, %v", i, d, err)
		}
	}
	if l.Allow(t.Context(), core.Hit{Rule: "r", Key: "k"}) || !l.Allow(t.Context(), core.Hit{Rule: "r", Key: "k", Quotas: []int64{core.Unlimited}}) {
		t.Error("Allow does not mind the quota of a hit")
	}
}

func TestAQuotaThatReadsTheBody(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{
		Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(1)},
		Quota: func(r core.Request, _ core.Limit) (int64, error) {
			b, err := r.Body(10)
			if err != nil {
				return 0, err
			}
			return strconv.ParseInt(string(b), 10, 64)
		},
	}}}, newClock())
	for i := range int64(3) {
		if d := l.Check(&request{body: "2"}); d.Allowed != (i < 2) || d.Err != nil {
			t.Errorf("request %d: %v, %v", i, d, d.Err)
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

// A decision on one limit is adjusted with the quota that it was made with.
func TestAdjustWithTheQuotaOfTheDecision(t *testing.T) {
	c := newClock()
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{{Quota: 6, Window: time.Minute, Algorithm: core.TokenBucket}}}}}, c)
	k := core.Hit{Rule: "r", Key: "k", Quotas: []int64{60}}
	d, err := l.Take(t.Context(), 30, k)
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if err := l.Adjust(t.Context(), d, 60); err != nil {
		t.Fatal(err)
	}
	if d, _ = l.Peek(t.Context(), 1, k); d.RetryAfter != time.Second {
		t.Errorf("a wait of %v, want 1s", d.RetryAfter)
	}
}

// The highest quota is a quota.
func TestTheHighestQuotaOfARequest(t *testing.T) {
	for _, row := range []struct {
		limit core.Limit
		quota int64
	}{
		{core.PerMinute(5), core.MaxQuota},
		{core.Limit{Quota: 5, Window: time.Minute, Algorithm: core.SlidingLog}, core.MaxLogQuota},
	} {
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{row.limit}}}}, newClock())
		d, err := l.Take(t.Context(), 6, core.Hit{Rule: "r", Key: "k", Quotas: []int64{row.quota}})
		if err != nil || !d.Allowed || d.Remaining != row.quota-6 {
			t.Errorf("%v: %v, %v", row.limit, d, err)
		}
	}
}

// The longest block is allowed, and a look without a cost at a blocked key succeeds.
func TestTheLongestBlock(t *testing.T) {
	for _, limits := range [][]core.Limit{{core.PerMinute(5)}, {core.PerMinute(5), core.PerHour(9)}} {
		c := newClock()
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: limits}}}, c)
		k := core.Hit{Rule: "r", Key: "k"}
		if err := l.Block(t.Context(), core.MaxWindow, k); err != nil {
			t.Fatal(err)
		}
		for _, hits := range [][]core.Hit{{k}, {k, {Rule: "r", Key: "other"}}} {
			if d, err := l.Peek(t.Context(), 0, hits...); err != nil || !d.Allowed || d.Reason == core.ReasonOverLimit || d.RetryAfter != 0 {
				t.Errorf("a look: %v, %v", d, err)
			}
			if d, err := l.Take(t.Context(), 0, hits...); err != nil || !d.Allowed {
				t.Errorf("a take of nothing: %v, %v", d, err)
			}
		}
		if l.Allow(t.Context(), k) {
			t.Error("allowed")
		}
	}
}

// A block that is over before the window does not shorten what the window says.
func TestABlockShorterThanTheWindow(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{{Quota: 2, Window: time.Minute, Algorithm: core.TokenBucket}}}}}, newClock())
	k := core.Hit{Rule: "r", Key: "k"}
	if d, err := l.Take(t.Context(), 2, k); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if err := l.Block(t.Context(), time.Second, k); err != nil {
		t.Fatal(err)
	}
	d, err := l.Take(t.Context(), 1, k)
	if err != nil || d.RetryAfter != 30*time.Second || d.ResetAfter != time.Minute {
		t.Errorf("%v, %v: waits %v and %v", d, err, d.RetryAfter, d.ResetAfter)
	}
	for s := range d.Limits() {
		if s.MoreAfter != 30*time.Second {
			t.Errorf("more after %v, want 30s", s.MoreAfter)
		}
	}
}

// No header names a limit that is unlimited for the request, in any form.
func TestHeadersLeaveOutUnlimitedLimits(t *testing.T) {
	for _, row := range []struct {
		headers core.Headers
		quotas  []int64
		want    []string // how many limits each value names is how many commas and quotas it has
	}{
		{core.HeadersDraft07, []int64{core.Unlimited, core.Unlimited}, nil},
		{core.HeadersXSeconds, []int64{core.Unlimited, core.Unlimited}, nil},
		{core.HeadersDraft10, []int64{core.Unlimited, core.Unlimited}, nil},
		{core.HeadersDraft07, []int64{core.Unlimited, 7}, []string{"7;w=3600"}},
		{core.HeadersDraft10, []int64{core.Unlimited, 7}, []string{`"r-1h";q=7;w=3600`}},
	} {
		l := newLimiter(t, core.Config{Headers: row.headers, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(5), core.PerHour(9)}}}}, newClock())
		d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k", Quotas: row.quotas})
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		var policies []string
		all := d.AppendHeaders(nil)
		for _, h := range all {
			if strings.EqualFold(h.Name, "RateLimit-Policy") {
				policies = append(policies, h.Value)
			}
		}
		if row.want == nil && len(all) > 0 || strings.Join(policies, "|") != strings.Join(row.want, "|") {
			t.Errorf("headers %v, quotas %v: %v, want the policy %v", row.headers, row.quotas, all, row.want)
		}
	}
}

// A key with a quota of its own takes no more memory than one without: the store does not
// keep the quota.
func TestQuotasOfKeysTakeNoMemory(t *testing.T) {
	const keys = 100_000
	grown := func(quota func(i int) []int64) int64 {
		l := newLimiter(t, core.Config{
			Store: core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: keys, Clock: newClock().Now})),
			Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(10), core.PerMinute(10)}}},
		}, nil)
		before := heap()
		for i := range keys {
			if d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: strconv.Itoa(i), Quotas: quota(i)}); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		}
		after := heap()
		runtime.KeepAlive(l)
		return after - before
	}
	without := grown(func(int) []int64 { return nil })
	with := grown(func(i int) []int64 { return []int64{int64(100 + i), int64(7 + i)} })
	t.Logf("%d keys: %d bytes without quotas of their own, %d with", keys, without, with)
	// One quota takes 8 bytes. What other tests have left on the heap made a difference of
	// 131,000 bytes.
	if with > without+4*keys {
		t.Errorf("quotas of their own take %d bytes", with-without)
	}
}

// A hit without quotas beside one with some has its limits' own.
func TestAHitWithoutQuotasBesideOneWithSome(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "a", Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "b", Limits: []core.Limit{core.PerMinute(6), core.PerHour(9)}},
	}}))
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "a", Key: "k", Quotas: []int64{50}}, core.Hit{Rule: "b", Key: "k"})
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	want := `"a";q=50;w=60, "b-1m";q=6;w=60, "b-1h";q=9;w=3600`
	for _, h := range d.AppendHeaders(nil) {
		if strings.EqualFold(h.Name, "RateLimit-Policy") && h.Value != want {
			t.Errorf("%s, want %s", h.Value, want)
		}
	}
}
