package core_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

// tenants joins a tenant to every key.
var tenants = hooktest.Funcs{KeyExtraFunc: func(core.Request) (string, error) { return "acme", nil }}

// The counter that a request was charged to is found by the hit of its decision, and by
// no other.
func TestTheHitOfADecisionFindsItsCounter(t *testing.T) {
	key := func(text string) core.KeyFunc {
		return func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, text...), nil }
	}
	quota := func(core.Request, core.Limit) (int64, error) { return 7, nil }
	for name, rules := range map[string][]core.Rule{
		"one limit":       {{Name: "user", Key: key("alice"), Limits: []core.Limit{core.PerMinute(5)}}},
		"two limits":      {{Name: "user", Key: key("alice"), Limits: []core.Limit{core.PerMinute(5), core.PerHour(9)}}},
		"two rules":       {{Name: "ip", Key: key("192.0.2.1"), Limits: []core.Limit{core.PerMinute(100)}}, {Name: "user", Key: key("alice"), Limits: []core.Limit{core.PerMinute(5)}}},
		"a quota":         {{Name: "user", Key: key("alice"), Quota: quota, Limits: []core.Limit{core.PerMinute(5)}}},
		"quotas of a key": {{Name: "ip", Key: key("192.0.2.1"), Limits: []core.Limit{core.PerMinute(100)}}, {Name: "user", Key: key("alice"), Quota: quota, Limits: []core.Limit{core.PerMinute(5), core.PerHour(9)}}},
	} {
		for extra, hooks := range map[string]core.Hooks{"": core.DefaultHooks{}, "acme": tenants} {
			t.Run(name+" "+extra, func(t *testing.T) {
				l := core.Must(core.New(core.Config{Rules: rules, Hooks: hooks}))
				d := l.Check(&request{})
				hit := d.Hit()
				want := core.Hit{Rule: "user", Key: "alice", Extra: extra, Quotas: hit.Quotas}
				if !reflect.DeepEqual(hit, want) || (hit.Quotas != nil) != (rules[len(rules)-1].Quota != nil) {
					t.Fatalf("%+v", hit)
				}
				for _, q := range hit.Quotas {
					if q != 7 {
						t.Errorf("quotas %d", hit.Quotas)
					}
				}
				seen, err := l.Peek(t.Context(), 1, hit)
				if err != nil || seen.Remaining != d.Remaining || seen.StoredKey() != d.StoredKey() || !reflect.DeepEqual(seen.Hit(), hit) {
					t.Errorf("%v, %v, want %v", seen, err, d)
				}
				other := hit
				other.Extra += "x"
				if seen, _ := l.Peek(t.Context(), 1, other); seen.Remaining == d.Remaining || seen.StoredKey() == d.StoredKey() {
					t.Errorf("another extra finds it too: %v", seen)
				}
			})
		}
	}
}

// A Take with an extra is refunded and forgotten as one without is.
func TestAHitWithAnExtraIsTakenAndGivenBack(t *testing.T) {
	for name, limits := range map[string][]core.Limit{"one limit": {core.PerMinute(5)}, "two limits": {core.PerMinute(5), core.PerHour(9)}} {
		t.Run(name, func(t *testing.T) {
			l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Limits: limits}}}))
			plain, extra := core.Hit{Rule: "r", Key: "k"}, core.Hit{Rule: "r", Key: "k", Extra: "e"}
			left := func(h core.Hit) int64 {
				t.Helper()
				d, err := l.Peek(t.Context(), 1, h)
				if err != nil {
					t.Fatal(err)
				}
				return d.Remaining
			}
			d, err := l.Take(t.Context(), 2, plain, extra, extra)
			if err != nil || left(plain) != 3 || left(extra) != 3 {
				t.Fatal(d, err, left(plain), left(extra))
			}
			if !l.Allow(t.Context(), extra) || left(plain) != 3 || left(extra) != 2 {
				t.Errorf("%d and %d left", left(plain), left(extra))
			}
			if d, err = l.Take(t.Context(), 2, extra); err != nil || left(extra) != 0 || d.Key() != "k" {
				t.Fatal(d, err)
			}
			if err := l.Adjust(t.Context(), d, 0); err != nil || left(plain) != 3 || left(extra) != 2 {
				t.Errorf("%v: %d and %d left", err, left(plain), left(extra))
			}
			if err := l.Reset(t.Context(), extra); err != nil || left(plain) != 3 || left(extra) != 5 {
				t.Errorf("%v: %d and %d left", err, left(plain), left(extra))
			}
		})
	}
}

func TestNoHitIfNoRuleApplied(t *testing.T) {
	if hit := (core.Decision{}).Hit(); !reflect.DeepEqual(hit, core.Hit{}) {
		t.Errorf("%+v", hit)
	}
}

func TestADecisionTellsMilliseconds(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{{Quota: 2, Window: 1500 * time.Millisecond, Algorithm: core.FixedWindow}}}}}, newClock())
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"})
	if err != nil || !strings.HasSuffix(d.String(), "whole again in 1.5s") {
		t.Errorf("%v, %v", d, err)
	}
}

func TestADecisionOfADryRunTellsWhyItWouldDeny(t *testing.T) {
	for err, want := range map[error]string{
		core.ErrBadRequest:   `limiter "default" would deny a bad request`,
		errors.New("broken"): `limiter "default" would deny, because it could not decide`,
	} {
		l := newLimiter(t, core.Config{DryRun: true, Log: (&lines{}).logger(), Rules: []core.Rule{{Name: "r", Key: fails(err), Limits: []core.Limit{core.PerMinute(1)}}}}, newClock())
		if d := l.Check(&request{}); !d.Allowed || d.String() != want {
			t.Errorf("%q, want %q", d.String(), want)
		}
	}
}
