package core_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// After four waits of 1, 2, 4 and 8 s, each Decay after the end of the last one
// takes back one of them.
func TestStrikesDecayOneByOne(t *testing.T) {
	const decay = time.Hour
	for after, want := range map[time.Duration]time.Duration{
		0:                          16 * time.Second,
		decay - time.Microsecond:   16 * time.Second,
		decay:                      8 * time.Second,
		2*decay - time.Microsecond: 8 * time.Second,
		2 * decay:                  4 * time.Second,
		3 * decay:                  2 * time.Second,
		4*decay - time.Microsecond: 2 * time.Second,
		4 * decay:                  time.Second,
		9 * decay:                  time.Second,
	} {
		c := newClock()
		_, l := memoryLimiter(t, 0, c, core.Limit{
			Quota: 1, Window: time.Minute, Algorithm: core.FixedWindow,
			Lockout: core.Lockout{First: time.Second, Factor: 2, Max: 24 * time.Hour, Decay: decay},
		})
		wait := func() time.Duration {
			if !take(t, l, "k") {
				t.Fatalf("%v after the last wait: denied", after)
			}
			d, err := l.Peek(t.Context(), 1, core.Hit{Rule: "r", Key: "k"})
			if err != nil {
				t.Fatal(err)
			}
			return d.RetryAfter
		}
		for range 4 {
			c.advance(wait())
		}
		c.advance(after)
		if got := wait(); got != want {
			t.Errorf("%v after the last wait the next one is %v, want %v", after, got, want)
		}
	}
}
