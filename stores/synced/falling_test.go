package synced_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// A process goes on denying when the backend has forgotten a key, and the
// backend learns of the hits again.
func TestADeletedCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		stores, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second}, aligned(10, day))
		for range 10 {
			take(t, limiters[0], "k")
		}
		time.Sleep(2 * time.Second)
		b.set(func(b *shared) { clear(b.counts) })
		for range 20 {
			if take(t, limiters[0], "k") {
				t.Fatal("admitted although this process knows of 10 hits")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got := b.total(); got != 10 {
			t.Errorf("the backend has %d hits, want 10", got)
		}
		late, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second}, aligned(10, day))
		if take(t, limiters[0], "k") {
			t.Error("a process that starts after that admits")
		}
		_, _ = stores[0].Close(context.Background()), late[0].Close(context.Background())
	})
}

// fleet is processes that have counted a key, each a part of it, and know of
// each other's hits.
func fleet(t *testing.T, n int, interval, latency time.Duration) (b *shared, stores []*synced.Store, limiters []*core.Limiter, hits int64) {
	t.Helper()
	b = newShared()
	b.latency = latency
	stores, limiters = newNodes(t, b, n, synced.Config{Interval: interval}, aligned(1_000_000, day))
	for i, l := range limiters {
		for range 10 * (i + 1) {
			take(t, l, "k")
			hits++
		}
	}
	idle(t, limiters, 3*interval+3*latency)
	return b, stores, limiters, hits
}

// idle lets time pass in which processes are asked for the key.
func idle(t *testing.T, limiters []*core.Limiter, d time.Duration) {
	t.Helper()
	for range 20 {
		for _, l := range limiters {
			left(t, l, "k")
		}
		time.Sleep(d/20 + 1)
	}
}

// When a replica takes over that has not heard of the last hits, the processes
// send them again, and together hardly more: fewer hits than there are
// processes, even if all notice at the same moment.
func TestAStaleReplica(t *testing.T) {
	for _, nodes := range []int{1, 2, 4, 16} {
		for _, latency := range []time.Duration{0, 20 * time.Millisecond} {
			for _, kept := range []int64{0, 3, 50} { // per cent
				t.Run(fmt.Sprint(nodes, " processes, ", latency, ", ", kept, " per cent kept"), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						const interval = 100 * time.Millisecond
						b, stores, limiters, hits := fleet(t, nodes, interval, latency)
						b.set(func(b *shared) {
							for c := range b.counts {
								b.counts[c] = b.counts[c] * kept / 100
							}
						})
						least := hits
						for range 40 {
							idle(t, limiters, interval/2)
							for i, l := range limiters {
								if got := 1_000_000 - left(t, l, "k"); got < hits {
									t.Fatalf("process %d knows of %d hits, and knew of %d", i, got, hits)
								}
							}
							least = min(least, b.total())
						}
						if got := b.total(); got < hits || got >= hits+int64(nodes) {
							t.Errorf("the backend has %d hits, there were %d", got, hits)
						}
						for _, s := range stores {
							_ = s.Close(context.Background())
						}
					})
				})
			}
		}
	}
}

// The processes that counted the hits have ended: those that only know of them
// push them again, a little later, and not all at once.
func TestTheHitsOfProcessesThatHaveEnded(t *testing.T) {
	for _, owners := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			const interval = 100 * time.Millisecond
			b, stores, limiters, hits := fleet(t, 5, interval, time.Millisecond)
			late, others := newNodes(t, b, 3, synced.Config{Interval: interval}, aligned(1_000_000, day))
			limiters = append(limiters[:owners:owners], others...)
			idle(t, limiters, 3*interval)
			for _, s := range stores[owners:] {
				if err := s.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			b.set(func(b *shared) { clear(b.counts) })
			idle(t, limiters, 40*interval)
			if got := b.total(); got < hits || got > 3*hits {
				t.Errorf("%d owners left: the backend has %d hits, there were %d", owners, got, hits)
			}
			for _, s := range append(late, stores[:owners]...) {
				_ = s.Close(context.Background())
			}
		})
	}
}

// What is given back or reset in one process is no loss to the others.
func TestGivenBackElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 100 * time.Millisecond
		b, stores, limiters, hits := fleet(t, 4, interval, 0)
		ctx, hit := context.Background(), core.Hit{Rule: "r", Key: "k"}
		d, err := limiters[2].Take(ctx, 7, hit)
		if err != nil {
			t.Fatal(err)
		}
		idle(t, limiters, 3*interval)
		if err := limiters[2].Adjust(ctx, d, 0); err != nil {
			t.Fatal(err)
		}
		idle(t, limiters, 10*interval)
		for i, l := range limiters {
			if got := 1_000_000 - left(t, l, "k"); got != hits {
				t.Errorf("after the refund process %d knows of %d hits, want %d", i, got, hits)
			}
		}
		if err := limiters[1].Reset(ctx, hit); err != nil {
			t.Fatal(err)
		}
		idle(t, limiters, 2*interval)
		for i, l := range limiters {
			if got := left(t, l, "k"); got != 1_000_000 {
				t.Errorf("after the reset process %d has %d left", i, got)
			}
		}
		// What is lost of the hits and of the reset comes back, both of them.
		for _, back := range []bool{false, true} {
			b.set(func(b *shared) {
				maps.DeleteFunc(b.counts, func(_ synced.Counter, n int64) bool { return n < 0 == back })
			})
			idle(t, limiters, 20*interval)
			for i, l := range limiters {
				if got := left(t, l, "k"); got != 1_000_000 {
					t.Errorf("refunds lost: %v: process %d has %d left", back, i, got)
				}
			}
			if got := b.total(); got <= -4 || got >= 4 {
				t.Errorf("refunds lost: %v: the backend has %d hits", back, got)
			}
		}
		for _, s := range stores {
			_ = s.Close(context.Background())
		}
	})
}

// A counter that the backend has let expire with its window is no loss.
func TestExpiryIsNoLoss(t *testing.T) {
	for _, row := range []struct{ interval, every time.Duration }{{100 * time.Millisecond, 10 * time.Millisecond}, {700 * time.Millisecond, 5900 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			const window = time.Second
			b := newShared()
			stores, limiters := newNodes(t, b, 1, synced.Config{Interval: row.interval}, aligned(100, window))
			time.Sleep(time.Until(time.Now().Truncate(window).Add(window * 9 / 10)))
			next := time.Now()
			for range 6000 {
				if !time.Now().Before(next) {
					take(t, limiters[0], "k")
					next = next.Add(row.every)
				}
				time.Sleep(10 * time.Millisecond)
				b.set(func(b *shared) {
					for c := range b.counts {
						if age := time.Since(c.Start); age >= 2*window+20*time.Millisecond {
							t.Errorf("a counter is back %v after its window began", age)
						}
					}
					maps.DeleteFunc(b.counts, func(c synced.Counter, _ int64) bool { return time.Since(c.Start) >= 2*window })
				})
			}
			_ = stores[0].Close(context.Background())
		})
	}
}

// staleOnce applies the first push that comes, loses its answer and those of some
// more tries, and answers the next try with the totals of before: as a server may
// that still works on the first.
type staleOnce struct {
	*shared
	tries int
	lost  int // tries whose answer is lost, beside the first
}

func (b *staleOnce) PushDiffs(ctx context.Context, batch synced.Batch) ([]int64, error) {
	totals, err := b.shared.PushDiffs(ctx, batch)
	switch b.tries++; {
	case b.tries <= 1+b.lost:
		return nil, errDown
	case b.tries == 2+b.lost && err == nil:
		clear(totals)
	}
	return totals, err
}

// A total that is too low in the answer to a batch that was tried twice is no
// loss.
func TestATotalOfBeforeIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &staleOnce{shared: newShared()}
		s := newStore(t, b, synced.Config{Interval: time.Second, Log: quiet})
		l := newLimiter(t, s, aligned(100, day))
		for range 7 {
			take(t, l, "k")
		}
		time.Sleep(10 * time.Second)
		if got := b.total(); got != 7 {
			t.Errorf("the backend has %d hits, want 7", got)
		}
		_ = s.Close(context.Background())
	})
}

// The same of a window that has ended so long ago that it is not pushed any more.
func TestATotalOfAnEndedWindowIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &staleOnce{shared: newShared(), lost: 9}
		s := newStore(t, b, synced.Config{Interval: time.Second, Log: quiet})
		l := newLimiter(t, s, aligned(100, time.Minute))
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(2*time.Minute - 100*time.Millisecond)))
		for range 7 {
			take(t, l, "k")
		}
		time.Sleep(3 * time.Second)
		take(t, l, "k") // in the next window
		time.Sleep(20 * time.Second)
		if got := b.total(); got != 8 {
			t.Errorf("the backend has %d hits, want 8", got)
		}
		_ = s.Close(context.Background())
	})
}
