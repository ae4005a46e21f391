package meter

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Decide says that no hit is left if Remaining is 0, and Tell what Report says.
func TestDecideAndTellAgreeWithReport(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's
	for _, m := range everyAlgorithm(minute) {
		if !m.Cells() {
			continue
		}
		w, now, spents := make([]uint64, cellWords), int64(now0), 0
		for range 5000 {
			cost, charge := random.Int64N(4), random.IntN(4) > 0
			c, _, allowed, spent := m.Decide(w, now, cost, charge)
			if left := m.Remaining(w, now); spent != (left == 0) {
				t.Fatalf("%v: spent is %t, %d hits are left", m.algorithm, spent, left)
			}
			var told, reported Result
			told.Allowed = allowed
			told.Remaining, told.ResetAfter, told.MoreAfter, told.RetryAfter = m.Tell(c, now, cost, allowed)
			if m.Report(&reported, w, now, cost, allowed); told != reported {
				t.Fatalf("%v: told %+v, reported %+v", m.algorithm, told, reported)
			}
			if left := m.Left(c, now); left != told.Remaining {
				t.Fatalf("%v: %d hits are left, told %+v", m.algorithm, left, told)
			}
			if spent {
				spents++
			}
			now += random.Int64N(20 * second)
		}
		if spents == 0 {
			t.Errorf("%v: some hit was always left", m.algorithm)
		}
	}
}
