package synced_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/stores/synced"
)

// After two Intervals a process knows what another has counted.
func TestConvergence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		stores, limiters := newNodes(t, b, 4, synced.Config{Interval: time.Second}, aligned(100, time.Hour))
		for i, l := range limiters {
			for range 10 + i {
				take(t, l, "k")
			}
		}
		time.Sleep(2*time.Second + time.Millisecond)
		for i, l := range limiters {
			if got := left(t, l, "k"); got != 100-10-11-12-13 {
				t.Errorf("node %d has %d left, want 54", i, got)
			}
		}
		for _, s := range stores {
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if got := b.total(); got != 46 {
			t.Errorf("the backend has %d hits, want 46", got)
		}
	})
}

// The overshoot of processes that all try as often as they can is bounded. The
// package comment has a table of what this test logs.
func TestOvershoot(t *testing.T) {
	const nodes, quota, window, every = 4, 1000, 10 * time.Second, time.Millisecond
	for _, row := range []struct {
		interval, latency time.Duration
		loss              int // every so many answers one is lost
	}{
		{10 * time.Millisecond, 0, 0}, {100 * time.Millisecond, 0, 0}, {time.Second, 0, 0}, {100 * time.Millisecond, 20 * time.Millisecond, 3}, {0, 0, 0},
	} {
		t.Run(fmt.Sprint(row.interval, row.latency, row.loss), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Now().Truncate(window).Add(window)))
				b := newShared()
				b.latency = row.latency
				stores, limiters := newNodes(t, b, nodes, synced.Config{Interval: row.interval}, aligned(quota, window))
				start := time.Now()
				const windows = 6
				var allowed [windows]int
				for tick := 0; time.Since(start) < windows*window; tick++ {
					if row.loss > 0 && tick%(row.loss*100) == 0 {
						b.set(func(b *shared) { b.lose = 1 })
					}
					for _, l := range limiters {
						if take(t, l, "k") {
							allowed[time.Since(start)/window]++
						}
					}
					time.Sleep(every)
				}
				late := row.interval + row.latency
				if row.loss > 0 {
					late += row.interval + row.latency // what was lost is heard of one exchange later
				}
				bound := min(nodes*quota, quota+(nodes-1)*int((late+every)/every)+nodes)
				sum := 0
				for i, n := range allowed {
					if n > bound {
						t.Errorf("window %d allows %d, the bound is %d", i, n, bound)
					}
					if i > 0 {
						sum += n
					}
				}
				if allowed[0] < quota {
					t.Errorf("the first window allows %d of %d", allowed[0], quota)
				}
				t.Logf("interval %v: first window %d, later ones %d on average, bound %d", row.interval, allowed[0], sum/(windows-1), bound)
				for _, s := range stores {
					_ = s.Close(context.Background())
				}
			})
		})
	}
}
