package memtable

import (
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// An operation that was under way during a Rebind counts in its own limits,
// wherever the table has them now.
func TestAnOldLayoutFindsItsLimitsInANewTable(t *testing.T) {
	old := bind(t, New(100, 0), perMinute(5), perDay(50), perHour(20))
	old.take(now0, 1)
	next, err := old.Rebind([]Rule{{"r", []meter.Limit{perDay(50), perMinute(5)}}})
	if err != nil {
		t.Fatal(err)
	}
	next.open() // the table takes the new layout over
	now := now0 + 2*minute
	for i := range int64(2) {
		results, _, allowed := old.take(now, 1)
		// The table has no state of the limit per hour any more.
		for j, want := range []int64{5 - (i + 1), 50 - (i + 2), 19} {
			if got := results[j].Remaining; !allowed || got != want {
				t.Errorf("take %d, limit %d: allowed %t, %d left, want %d", i+1, j, allowed, got, want)
			}
		}
	}
	results, _, _ := next.take(now, 1)
	if day, minute := results[0].Remaining, results[1].Remaining; day != 46 || minute != 2 {
		t.Errorf("%d left per day, %d per minute, want 46 and 2", day, minute)
	}
}
