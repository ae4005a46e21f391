package core_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Leases are renewed as often as the shortest lease of the limiter needs.
func TestTheShortestLeaseIsRenewedInTime(t *testing.T) {
	rules := []core.Rule{
		{Name: "long", Limits: []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.Leases}}},
		{Name: "short", Limits: []core.Limit{{Quota: 1, Window: 3 * time.Second, Algorithm: core.Leases}}},
	}
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			l, err := core.New(core.Config{Name: "api", Store: newShared(t), Rules: rules})
			if err != nil {
				t.Fatal(err)
			}
			hit := core.Hit{Rule: "short", Key: "k"}
			_, release := acquire(t, l, hit)
			for range 10 {
				time.Sleep(time.Second)
				synctest.Wait()
				if d, err := l.Peek(t.Context(), 1, hit); err != nil || d.Allowed {
					t.Fatalf("the lease has lapsed: %v, %v", d, err)
				}
			}
			release()
		})
		slices.Reverse(rules)
	}
}
