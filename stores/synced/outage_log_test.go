package synced_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// halves is a backend whose fetches may fail while it takes differences.
type halves struct {
	*shared
	fetchDown bool // guarded by shared.mu
}

func (b *halves) Counters(ctx context.Context, namespace string, windows []time.Duration, now time.Time) iter.Seq2[synced.Counter, error] {
	b.mu.Lock()
	down := b.fetchDown
	b.mu.Unlock()
	if down {
		return func(yield func(synced.Counter, error) bool) { yield(synced.Counter{}, errDown) }
	}
	return b.shared.Counters(ctx, namespace, windows, now)
}

// logged is a log that several goroutines write.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// The log says once that the backend fails, and that it answers again only when both exchanges and fetches work.
// Meanwhile decisions are degraded.
// A Close that cannot push is a failure, too.
func TestTheLogOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const fails, works = "do not answer", "answer again"
		var log logged
		b := &halves{shared: newShared(), fetchDown: true}
		s := newStore(t, b, synced.Config{Interval: 10 * time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))})
		l := newLimiter(t, s, aligned(1_000_000, day))
		step := func(what string, down, fetchDown bool, failures, recoveries int) {
			t.Helper()
			b.set(func(*shared) { b.down, b.fetchDown = down, fetchDown })
			for range 20 {
				take(t, l, "ann")
				time.Sleep(10 * time.Second)
				synctest.Wait()
			}
			if f, w := log.count(fails), log.count(works); f != failures || w != recoveries {
				t.Errorf("%s: logged %d failures and %d recoveries, want %d and %d", what, f, w, failures, recoveries)
			}
			for _, key := range []string{"ann", what} {
				d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: key})
				if want := failures > recoveries; err != nil || d.Degraded != want {
					t.Errorf("%s: key %q: degraded %v, want %v; error %v", what, key, d.Degraded, want, err)
				}
			}
		}
		step("fetches fail", false, true, 1, 0)
		step("all fails", true, true, 1, 0)
		step("fetches fail still", false, true, 1, 0)
		step("all works", false, false, 1, 1)
		step("exchanges fail", true, false, 2, 1)
		before := s.Stats().Failed
		if err := s.Close(t.Context()); err == nil || s.Stats().Failed != before+1 {
			t.Errorf("Close: %v, and %d failures, want %d", err, s.Stats().Failed, before+1)
		}
	})
}
