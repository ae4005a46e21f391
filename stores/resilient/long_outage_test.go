package resilient_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// How long a key is remembered depends on its own rule.
func TestALongOutageOfARuleBesideAShorterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		f.fail(errGone)
		l := core.Must(core.New(core.Config{
			Name: "l", Store: newStore(t, f, resilient.Config{Failures: 1}),
			Rules: []core.Rule{
				{Name: "burst", Limits: []core.Limit{{Quota: 100, Window: time.Second}}},
				{Name: "user", Limits: []core.Limit{{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow}}},
			},
		}))
		admitted := func(n int) int { return allowedOf(t, l, n) }
		admitted(5)
		time.Sleep(72 * time.Minute) // the key is remembered for three more minutes, if not longer
		admitted(5)
		f.fail(nil)
		time.Sleep(5 * time.Minute)
		if n := admitted(20); n != 5 {
			t.Errorf("%d admitted after the outage, want 5", n)
		}
	})
}

// In a long outage, the hits that still count are the last ones.
func TestALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		f.fail(errGone)
		l := core.Must(core.New(core.Config{
			Name: "l", Store: newStore(t, f, resilient.Config{Failures: 1}),
			Rules: []core.Rule{{Name: "user", Limits: []core.Limit{{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow}}}},
		}))
		admitted := func(n int) int { return allowedOf(t, l, n) }
		admitted(5)
		time.Sleep(72 * time.Minute)
		admitted(5)
		f.fail(nil)
		time.Sleep(5 * time.Minute)
		if n := admitted(20); n != 5 {
			t.Errorf("%d admitted after the outage, want 5", n)
		}
	})
}

// allowedOf takes n times and returns how many hits are allowed.
func allowedOf(t *testing.T, l *core.Limiter, n int) (count int) {
	t.Helper()
	for range n {
		if d, err := take(l); err != nil {
			t.Fatal(err)
		} else if d.Allowed {
			count++
		}
	}
	return count
}
