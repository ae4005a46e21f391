package resilient_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/stores/resilient"
)

// The hits of an outage are charged a quarter of Retry after it at the latest, and
// within 250 ms.
func TestWhenTheHitsOfAnOutageAreCharged(t *testing.T) {
	for retry, tick := range map[time.Duration]time.Duration{time.Millisecond: time.Millisecond, 400 * time.Millisecond: 100 * time.Millisecond, time.Hour: 250 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			all := instances(t, 2, resilient.Config{Failures: 1000, Retry: retry}, rule("user", fixed(5, time.Hour)))
			left := func() int64 {
				d, err := all[0].Peek(context.Background(), 0, alice)
				if err != nil {
					t.Fatal(err)
				}
				return d.Remaining
			}
			all[1].link.fail(errRefused)
			all[1].admitted(1, alice)
			all[1].link.fail(nil)
			time.Sleep(tick - time.Nanosecond)
			if n := left(); n != 5 {
				t.Errorf("Retry %v: %d hits are left before %v, want 5", retry, n, tick)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if n := left(); n != 4 {
				t.Errorf("Retry %v: %d hits are left after %v, want 4", retry, n, tick)
			}
		})
	}
}
