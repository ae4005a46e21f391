package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A table whose keys have all been reset takes keys as before.
func TestATableWhoseKeysWereResetStaysUsable(t *testing.T) {
	m, l := memoryLimiter(t, 1000, newClock(), core.PerHour(5))
	for i := range 150 {
		take(t, l, fmt.Sprint(i))
	}
	for i := range 150 {
		reset(t, l, core.Hit{Rule: "r", Key: fmt.Sprint(i)})
	}
	for range 500 {
		take(t, l, "one")
		reset(t, l, core.Hit{Rule: "r", Key: "one"})
	}
	if n := m.Len(); n != 0 {
		t.Errorf("%d keys are held after all were reset", n)
	}
}

// Failed logins fill the tables and expire; the successful logins that follow
// take a key and reset it.
func TestSuccessfulLoginsAfterAFloodOfFailedOnes(t *testing.T) {
	c := newClock()
	m, l := memoryLimiter(t, 0, c, core.Limit{Quota: 5, Window: time.Minute, Algorithm: core.FixedWindow})
	for i := range 60_000 {
		take(t, l, fmt.Sprint("failed", i))
	}
	c.advance(time.Hour)
	for i := range 60_000 {
		key := fmt.Sprint("user", i)
		take(t, l, key)
		reset(t, l, core.Hit{Rule: "r", Key: key})
	}
	if n := m.Len(); n > 6_000 {
		t.Errorf("%d keys are held, and all of them have expired", n)
	}
}

// Clients alone empty the table of one rule: a flood on another rule pushes out
// what it holds, and then its next key arrives.
func TestAFloodOnAnotherRuleLeavesATableUsable(t *testing.T) {
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 1000, Clock: newClock().Now}))
	l := newLimiter(t, core.Config{Store: m, Rules: []core.Rule{
		{Name: "short", Limits: []core.Limit{{Quota: 5, Window: time.Minute}}},
		{Name: "day", Limits: []core.Limit{{Quota: 1, Window: 24 * time.Hour}}},
	}}, nil)
	for i := range 900 {
		takeOf(t, l, "short", fmt.Sprint(i))
	}
	for i := range 5000 {
		takeOf(t, l, "day", fmt.Sprint(i))
	}
	for i := range 2000 {
		takeOf(t, l, "short", fmt.Sprint("again", i))
		takeOf(t, l, "day", fmt.Sprint("again", i))
	}
}

func takeOf(t testing.TB, l *core.Limiter, rule, key string) bool {
	t.Helper()
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: rule, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Allowed
}

func reset(t testing.TB, l *core.Limiter, hits ...core.Hit) {
	t.Helper()
	if err := l.Reset(t.Context(), hits...); err != nil {
		t.Fatal(err)
	}
}
