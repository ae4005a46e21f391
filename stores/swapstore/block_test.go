package swapstore_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// A block is stored beside the counts: it ends with its time, with another one of no length, and
// with a reset, and takes of another process see it.
func TestABlockedKey(t *testing.T) {
	c, values := newClock(), newMapSwapper()
	limiter := func(window time.Duration) *core.Limiter {
		s, err := swapstore.New(values, swapstore.Config{Clock: c.Now})
		if err != nil {
			t.Fatal(err)
		}
		return newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{{Quota: 5, Window: window}}}}})
	}
	here, there := limiter(time.Minute), limiter(time.Hour)
	k := core.Hit{Rule: "r", Key: "k"}
	block := func(d time.Duration) {
		t.Helper()
		if err := here.Block(t.Context(), d, k); err != nil {
			t.Fatal(err)
		}
	}
	taken := func(want bool) {
		t.Helper()
		if a, b := take(t, here, "k"), take(t, there, "k"); a != want || b != want {
			t.Errorf("allowed here %t and there %t, want %t", a, b, want)
		}
	}
	block(0) // of a key without a value
	taken(true)
	block(time.Hour)
	block(10 * time.Second) // the last one counts
	taken(false)
	d, err := there.Take(t.Context(), 1, k)
	if err != nil || d.RetryAfter != 10*time.Second || d.Remaining != 0 {
		t.Errorf("%v, wait %v, %v", d, d.RetryAfter, err)
	}
	c.advance(10*time.Second - time.Microsecond)
	taken(false)
	c.advance(time.Microsecond)
	taken(true)
	if got := left(t, there, "r", "k"); got != 3 {
		t.Errorf("%d left, want 3: the counts stay", got)
	}
	block(time.Hour)
	taken(false)
	block(0)
	taken(true)
	block(time.Hour)
	if err := there.Reset(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	taken(true)
}
