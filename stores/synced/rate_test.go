package synced_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/stores/synced"
)

// Increment by 0 and Rate only read: in a full table they evict no counter, and
// Increment by more does.
func TestReadingARateEvictsNothing(t *testing.T) {
	for _, interval := range []time.Duration{time.Hour, -1} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t, newShared(), synced.Config{Interval: interval, MaxKeys: 64, Windows: []time.Duration{time.Minute}, Log: quiet})
			count := func(key string, n int64) {
				if _, err := s.Increment(t.Context(), key, time.Minute, n); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 3000 {
				count(fmt.Sprint("used", i), 1)
			}
			before := s.Stats()
			if before.Keys != 64 || before.Lost != 3000-64 {
				t.Fatalf("%+v, want a full table", before)
			}
			for i := range 1000 {
				count(fmt.Sprint("read", i), 0)
				if _, err := s.Rate(t.Context(), fmt.Sprint("read", i), time.Minute, 1); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Stats(); got != before {
				t.Errorf("interval %v: after reading %+v, before %+v", interval, got, before)
			}
		})
	}
}
