package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// The windows of two customers end at different times, the same in every process.
func ExampleLimit_spread() {
	now := time.Unix(1_764_000_000, 0)
	store := core.Must(core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return now }}))
	limiter := core.Must(core.New(core.Config{
		Store: store,
		Rules: []core.Rule{{Name: "customer", Key: core.TakeOnly, Limits: core.Must(core.ParseLimits("100/h fixed_window aligned spread"))}},
	}))
	for _, name := range []string{"ann", "bob"} {
		d, _ := limiter.Take(context.Background(), 1, core.Hit{Rule: "customer", Key: name})
		fmt.Println(name, d.ResetAfter.Round(time.Second))
	}
	// Output:
	// ann 59m12s
	// bob 10m43s
}

func TestALimitWhoseWindowsAreSpread(t *testing.T) {
	limits, err := core.ParseLimits("5/m aligned spread")
	if err != nil || !limits[0].Spread {
		t.Fatalf("%+v, %v", limits, err)
	}
	if got, want := limits[0].String(), "5 per 1m (aligned, spread)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, text := range []string{"5/m spread", "5/m fixed_window spread", "5/month spread", "5/m token_bucket spread"} {
		if _, err := core.ParseLimits(text); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "Spread: true") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := core.ParseLimits("5/month spread"); err == nil || !strings.Contains(err.Error(), "at the same instant for all keys: leave it out") || strings.Contains(err.Error(), "set Aligned") {
		t.Errorf("a month cannot be spread by setting Aligned: %v", err)
	}
	store := core.Must(core.NewMemory(core.MemoryConfig{}))
	both := core.Rule{Name: "r", Key: core.TakeOnly, Limits: core.Must(core.ParseLimits("5/m aligned spread, 6/m aligned"))}
	if _, err := core.New(core.Config{Store: store, Rules: []core.Rule{both}}); err != nil {
		t.Errorf("beside the same limit that is not spread: %v", err)
	}
	if l := limits[0]; l.Validate() != nil || l.Window != time.Minute {
		t.Error(l)
	}
}

// A key keeps its windows from one to the next, however a decision on it is asked for.
func TestTheWindowsOfAKeyThatAreSpread(t *testing.T) {
	for _, algorithm := range []core.Algorithm{core.FixedWindow, core.SlidingWindow} {
		for name, take := range map[string]func(l *core.Limiter, k core.Hit) bool{
			"Allow": func(l *core.Limiter, k core.Hit) bool { return l.Allow(t.Context(), k) },
			"Take": func(l *core.Limiter, k core.Hit) bool {
				d, err := l.Take(t.Context(), 1, k)
				return err == nil && d.Allowed
			},
			"Check": func(l *core.Limiter, k core.Hit) bool { return l.Check(&request{method: k.Key}).Allowed },
		} {
			limit := core.Limit{Quota: 1, Window: time.Hour, Algorithm: algorithm, Aligned: true, Spread: true}
			c := newClock()
			l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: byMethod, Limits: []core.Limit{limit}}}}, c)
			for _, key := range []string{"ann", "bob", "cara"} {
				k := core.Hit{Rule: "r", Key: key}
				if !take(l, k) {
					t.Fatalf("%s, %v: the first hit of %s is denied", name, algorithm, key)
				}
				for window := range 4 {
					d, _ := l.Peek(t.Context(), 1, k)
					wait := d.RetryAfter
					if window > 0 && wait != time.Hour {
						t.Errorf("%s, %v: the next hit of %s is allowed after %v, want 1h", name, algorithm, key, wait)
					}
					c.advance(wait - time.Microsecond)
					if take(l, k) {
						t.Errorf("%s, %v: allowed a microsecond early", name, algorithm)
					}
					c.advance(time.Microsecond)
					if !take(l, k) {
						t.Errorf("%s, %v: denied when the window of %s turns", name, algorithm, key)
					}
				}
			}
		}
	}
}
