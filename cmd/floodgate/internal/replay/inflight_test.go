package replay

import (
	"slices"
	"testing"
	"time"
)

// Nobody knows from a log how many requests ran at a time.
func TestLimitsOfWhatIsInFlightAreLeftOut(t *testing.T) {
	r := &Replay{config: Config{MaxKeys: 10}, now: time.Unix(1_800_000_000, 0)}
	one, err := newRun(File{"f", []byte("policies: [{name: a, limits: [{in-flight: 1, name: slots}, 5/m]}]")}, r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.close() }()
	allowed := 0
	for range 20 {
		if one.set.Check(&request{missing: map[string]bool{}}).Allowed {
			allowed++
		}
	}
	if allowed != 5 || !slices.Equal(one.result.LeftOut, []string{"slots"}) {
		t.Errorf("%d allowed, want 5; left out: %q", allowed, one.result.LeftOut)
	}
	s, err := newSweep("f", []byte("policies: [{name: a, limits: 1 in flight}]"), func() time.Time { return r.now }, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close() }()
	for range 20 {
		s.check(&request{missing: map[string]bool{}})
	}
	for _, p := range s.curves()[0].Points {
		if p.Denied != 0 {
			t.Errorf("× %g: %d denied", p.Factor, p.Denied)
		}
	}
}
