package core_test

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// A key with a quota of its own takes no more memory than one without: the store does not
// keep the quota.
func TestQuotasOfKeysTakeNoMemory(t *testing.T) {
	const keys = 100_000
	grown := func(quota func(i int) []int64) int64 {
		l := newLimiter(t, core.Config{
			Store: core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: keys, Clock: newClock().Now})),
			Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(10), core.PerMinute(10)}}},
		}, nil)
		before := heap()
		for i := range keys {
			if d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: strconv.Itoa(i), Quotas: quota(i)}); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		}
		after := heap()
		runtime.KeepAlive(l)
		return after - before
	}
	without := grown(func(int) []int64 { return nil })
	with := grown(func(i int) []int64 { return []int64{int64(100 + i), int64(7 + i)} })
	t.Logf("%d keys: %d bytes without quotas of their own, %d with", keys, without, with)
	// One quota takes 8 bytes. What other tests have left on the heap made a difference of
	// 131,000 bytes.
	if with > without+4*keys {
		t.Errorf("quotas of their own take %d bytes", with-without)
	}
}
