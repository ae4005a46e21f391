package replay

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Nobody waits in a replay: the requests are those of the past.
func TestNobodyWaitsInAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "policies: [{name: a, limits: 5/m, wait: 1m}, {name: b, limits: 9/m, wait: 1m, dry-run: true}, {name: c, limits: 9/m}]"
		r := &Replay{config: Config{MaxKeys: 10}, now: time.Unix(1_800_000_000, 0)}
		one, err := newRun(File{"f", []byte(text)}, r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = one.close() }()
		s, err := newSweep("f", []byte(text), func() time.Time { return r.now }, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.close() }()
		begun, allowed := time.Now(), 0
		for range 20 {
			if one.set.Check(&request{missing: map[string]bool{}}).Allowed {
				allowed++
			}
			s.check(&request{missing: map[string]bool{}})
		}
		if allowed != 5 || time.Since(begun) != 0 || !slices.Equal(one.result.Waits, []string{"a"}) {
			t.Errorf("%d allowed after %v, want 5 at once; policies with wait: %q", allowed, time.Since(begun), one.result.Waits)
		}
	})
}
