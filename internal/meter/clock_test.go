package meter

import (
	"testing"
	"testing/synctest"
	"time"
)

// The process's clock counts microseconds since 1970, and so does one that is given.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, given := Clock(nil), Clock(time.Now)
		for _, d := range []time.Duration{0, time.Microsecond, 3 * time.Second, 1000 * time.Hour} {
			time.Sleep(d)
			if want := time.Now().UnixMicro(); own() != want || given() != want {
				t.Errorf("after %v: %d and %d, want %d", d, own(), given(), want)
			}
		}
	})
}
