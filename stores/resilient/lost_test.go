package resilient_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A store that charges and whose answers are lost now and then, as under a
// burst: no more pass than the limit says, and what is given back is there again.
func TestLostAnswersAdmitNoMore(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, limit := range []core.Limit{
		core.PerHour(50),
		{Quota: 50, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Hour}},
	} {
		clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
		f := newFlaky(t, clock.Now)
		s := newStore(t, f, resilient.Config{Failures: 1 << 30, Timeout: patience, Clock: clock.Now})
		l := core.Must(core.New(core.Config{Name: "l", Store: s, Rules: []core.Rule{{Name: "user", Limits: []core.Limit{limit}}}}))
		f.late.Store(true)
		if d, err := take(l); err != nil || !d.Allowed || !d.Degraded {
			t.Fatalf("%v, %v", d, err)
		}
		f.late.Store(false)
		for range 30 { // given back, in both
			d, err := take(l)
			if err != nil || !d.Allowed || d.Degraded {
				t.Fatalf("%v, %v", d, err)
			}
			clock.Advance(time.Second)
			if err := l.Adjust(context.Background(), d, 0); err != nil {
				t.Fatal(err)
			}
		}
		allowed := 1
		for range 500 {
			f.late.Store(r.IntN(3) == 0)
			d, err := take(l)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if d.Allowed {
				allowed++
			}
		}
		if allowed != 50 {
			t.Errorf("seed %d, %v: %d admitted, want 50", seed, limit, allowed)
		}
	}
}

// Hits that the store denies, because others have used up the quota, are not
// counted in the process either.
func TestWhatTheStoreRefusesIsNotCounted(t *testing.T) {
	f := newFlaky(t, nil)
	l := newLimiter(t, newStore(t, f, resilient.Config{Timeout: patience}), 5)
	f.deny.Store(true)
	for range 20 {
		if d, err := take(l); err != nil || d.Allowed {
			t.Fatalf("%v, %v", d, err)
		}
	}
	f.fail(errGone)
	admitted := 0
	for range 20 {
		if d, err := take(l); err != nil {
			t.Fatal(err)
		} else if d.Allowed {
			admitted++
		}
	}
	if admitted != 5 {
		t.Errorf("%d admitted, want 5", admitted)
	}
}
