package resilient

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A gauge looks with the highest quota that the algorithm can have.
func TestAGaugeHasTheHighestQuota(t *testing.T) {
	g := newGauges([]core.StoreRule{{Name: "r", Limits: []core.Limit{
		{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow},
		{Quota: 5, Window: time.Hour, Algorithm: core.SlidingLog},
		{Quota: 5, Window: time.Hour},
	}}})[0]
	for i, want := range []int64{core.MaxQuota, core.MaxLogQuota, core.MaxQuota} {
		if g.quotas[i] != want || g.capacities[i] != want {
			t.Errorf("limit %d: quota %d, capacity %d, want %d", i, g.quotas[i], g.capacities[i], want)
		}
	}
}
