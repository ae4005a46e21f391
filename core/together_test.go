package core_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// judges are limiters of one store on one clock.
func judges(t *testing.T, configs ...core.Config) []*core.Limiter {
	t.Helper()
	now := time.Unix(1_800_000_000, 0)
	store := core.Must(core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return now }}))
	t.Cleanup(func() { _ = store.Close() })
	var all []*core.Limiter
	for _, c := range configs {
		c.Store = store
		all = append(all, core.Must(core.New(c)))
	}
	return all
}

func one(name string, limit core.Limit) core.Config {
	return core.Config{Name: name, Rules: []core.Rule{{Name: name, Key: func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, 'k'), nil }, Limits: []core.Limit{limit}}}}
}

func TestAPreviewIsWhatCheckWouldSay(t *testing.T) {
	denied := 0
	c := one("a", core.PerMinute(2))
	c.Hooks = core.HookFuncs{OnDisallowed: func(core.Request, core.Decision) core.Denial { denied++; return core.Denial{} }}.Hooks()
	l := judges(t, c)[0]
	r := &request{}
	for i := range 4 {
		for range 3 {
			if p := l.Preview(r); p.Allowed != (i < 2) || p.Reason != [2]core.Reason{core.WithinLimits, core.OverLimit}[min(1, i/2)] {
				t.Errorf("before request %d: %+v", i, p)
			}
		}
		if d := l.Check(r); d.Allowed != (i < 2) {
			t.Errorf("request %d: %+v", i, d)
		}
	}
	if st := l.Stats(); st.Allowed != 2 || st.Denied != 2 || denied != 0 {
		t.Errorf("stats %+v, %d calls of OnDisallowed", st, denied)
	}
	if err := l.Refund(context.Background(), l.Preview(r)); err != nil {
		t.Error(err)
	}
	if d := l.Preview(r); d.Allowed {
		t.Error("the refund of a preview gives something back")
	}
}

func TestAPreviewKnowsSkippingAndRehearsing(t *testing.T) {
	skips, rehearses := one("a", core.PerMinute(0)), one("b", core.PerMinute(0))
	skips.Hooks = core.HookFuncs{ShouldLimit: func(core.Request) bool { return false }}.Hooks()
	rehearses.Rehearsal = true
	ls := judges(t, skips, rehearses)
	if d := ls[0].Preview(&request{}); !d.Allowed || d.Reason != core.Skipped {
		t.Errorf("skipping: %+v", d)
	}
	if d := ls[1].Preview(&request{}); !d.Allowed || !d.Rehearsal || d.Reason != core.OverLimit {
		t.Errorf("rehearsing: %+v", d)
	}
}

func TestDecisionsTogether(t *testing.T) {
	minute, hour := one("minute", core.Limit{Quota: 2, Window: time.Minute, Algorithm: core.FixedWindow}), one("hour", core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow})
	never := one("never", core.Limit{Quota: 0, Window: time.Second, Algorithm: core.FixedWindow})
	nothing := core.Config{Name: "nothing", Rules: []core.Rule{{Key: core.TakeOnly, Limits: []core.Limit{core.PerSecond(1)}}}}
	minute.Headers = core.HeadersDraft10 | core.HeadersXSeconds
	ls := judges(t, minute, hour, never, nothing)
	r := &request{}
	a, b, n, none := ls[0].Check(r), ls[1].Check(r), ls[2].Check(r), ls[3].Check(r)

	if d := core.Together(); d.Allowed || len(d.AppendHeaders(nil)) != 0 {
		t.Errorf("of none: %+v", d)
	}
	for _, ds := range [][]core.Decision{{a, b, none}, {b, none, a}, {none, b, a}} {
		d := core.Together(ds...)
		if !d.Allowed || d.Limiter != "minute" { // 1 of 2 is less than 9 of 10
			t.Errorf("all allowed: %+v", d)
		}
		var values []string
		for _, h := range d.AppendHeaders(nil) {
			values = append(values, h.Name+": "+h.Value)
		}
		for _, want := range []string{`Ratelimit: "minute";r=1;t=60`, `Ratelimit: "hour";r=9;t=3600`, `Ratelimit-Policy: "hour";q=10;w=3600`, `X-Ratelimit-Reset: 60`} {
			if !slices.Contains(values, want) {
				t.Errorf("headers %q lack %s", values, want)
			}
		}
	}
	for _, ds := range [][]core.Decision{{a, n, b}, {n, a}, {b, none, n}} {
		if d := core.Together(ds...); d.Allowed || d.Limiter != "never" {
			t.Errorf("one refuses: %+v", d)
		}
	}
	ls[0].Check(r)
	for range 9 {
		ls[1].Check(r)
	}
	a, b = ls[0].Check(r), ls[1].Check(r)
	for _, ds := range [][]core.Decision{{a, b}, {b, a}} {
		if d := core.Together(ds...); d.Limiter != "hour" || d.RetryAfter != time.Hour {
			t.Errorf("two refuse: %+v", d)
		}
	}
	if d := core.Together(none); d.Limiter != "nothing" || !d.Allowed {
		t.Errorf("of one: %+v", d)
	}
}

func TestADerivedLimiterSharesCountersAndStats(t *testing.T) {
	l := judges(t, one("a", core.PerMinute(2)))[0]
	r := &request{}
	l.Check(r)
	l.Check(r)
	raised := core.Must(l.Derive(one("a", core.PerMinute(3))))
	if d := l.Check(r); d.Allowed {
		t.Error("the former limiter has changed")
	}
	if d := raised.Check(r); !d.Allowed || d.Remaining != 0 {
		t.Errorf("the derived one: %+v", d)
	}
	if st := raised.Stats(); st != l.Stats() || st.Allowed != 3 || st.Denied != 1 {
		t.Errorf("stats %+v and %+v", st, l.Stats())
	}
	for name, c := range map[string]core.Config{"another name": one("b", core.PerMinute(1)), "a bad limit": one("a", core.Limit{Quota: -1, Window: time.Second})} {
		if _, err := l.Derive(c); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	c := one("a", core.PerMinute(1))
	c.Store = core.Must(core.NewMemory(core.MemoryConfig{}))
	if _, err := l.Derive(c); err == nil {
		t.Error("another store is taken")
	}
}
