package synced_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

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

// The log says once that the backend fails, and once that it answers again.
// Meanwhile decisions are degraded.
func TestTheLogOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const fails, works = "do not answer", "answer again"
		var log logged
		b := newShared()
		b.down = true
		s := newStore(t, b, synced.Config{Interval: 10 * time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))})
		l := newLimiter(t, s, aligned(1_000_000, day))
		step := func(what string, down bool, failures, recoveries int) {
			t.Helper()
			b.set(func(*shared) { b.down = down })
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
		if d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "ann"}); err != nil || !d.Degraded {
			t.Errorf("after a fetch that has failed: degraded %v, error %v", d.Degraded, err)
		}
		step("down from the start", true, 1, 0)
		step("up", false, 1, 1)
		step("down", true, 2, 1)
		step("up again", false, 2, 2)
		b.set(func(*shared) { b.down = true })
		before := s.Stats().Failed
		if err := s.Close(t.Context()); err == nil || s.Stats().Failed != before+3 {
			t.Errorf("Close: %v, and %d failures, want %d", err, s.Stats().Failed, before+3)
		}
	})
}
