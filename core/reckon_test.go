package core

import (
	"testing"
	"time"
)

// A wait is never longer than MaxRefill, however many rounds it has.
func TestAWaitOfManyRounds(t *testing.T) {
	const most = int64(1) << 62
	for _, row := range []struct {
		wait   time.Duration
		rounds int64
		round  time.Duration
		want   time.Duration
	}{
		{time.Second, 0, time.Hour, time.Second},
		{time.Second, 3, time.Hour, 3*time.Hour + time.Second},
		{0, most, time.Microsecond, MaxRefill},
		{time.Hour, most, MaxRefill, MaxRefill},
		{MaxRefill + time.Hour, 0, time.Hour, MaxRefill},
		{MaxRefill, 1, time.Hour, MaxRefill},
		{time.Minute, 1, MaxRefill - time.Hour, MaxRefill - time.Hour + time.Minute}, // as many rounds as there is room for
		{MaxRefill - time.Hour, 1, 2 * time.Hour, MaxRefill},
	} {
		if got := plus(row.wait, row.rounds, row.round); got != row.want {
			t.Errorf("%v and %d rounds of %v: %v, want %v", row.wait, row.rounds, row.round, got, row.want)
		}
	}
}
