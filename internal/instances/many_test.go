package instances_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// Processes with many callers each, whose decisions travel together, allow exactly
// the quota of a key, whatever its algorithm.
func TestProcessesWithManyCallersShareAKey(t *testing.T) {
	const quota = 1500
	long := core.MaxWindow // no hit of a token bucket comes back meanwhile
	for _, l := range []core.Limit{
		{Name: "sliding", Quota: quota, Window: long},
		{Name: "fixed", Quota: quota, Window: long, Algorithm: core.FixedWindow},
		{Name: "bucketed", Quota: quota, Window: long, Algorithm: core.BucketedWindow, Precision: long / 366},
		{Name: "log", Quota: quota, Window: long, Algorithm: core.SlidingLog},
		{Name: "token", Quota: quota, Window: long, Algorithm: core.TokenBucket},
		{Name: "lockout", Quota: quota, Window: long, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Hour, Factor: 2, Max: 24 * time.Hour, Decay: time.Hour}},
	} {
		t.Run(l.Name, func(t *testing.T) {
			w := work{Kind: "redis", Addr: redistest.Start(t).Addr, Limiter: "many", AtOnce: 64, Limits: [][]core.Limit{{l}}}
			f := newFleet(t, w, processes)
			f.begin()
			f.end()
			n, unknown := f.allowed(-1)
			if left, _ := rest(t, w); n != quota || left != 0 || unknown != 0 {
				t.Errorf("%d of a quota of %d were allowed, %d were left, and of %d nobody knows", n, quota, left, unknown)
			}
		})
	}
}
