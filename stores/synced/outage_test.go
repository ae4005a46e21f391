package synced_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// scripted is a backend that calls push before each push, and counters in place of each fetch.
type scripted struct {
	*shared
	push     func() error
	counters func(ctx context.Context) error // nil: that of shared
}

func (s *scripted) PushDiffs(ctx context.Context, batch synced.Batch) ([]int64, error) {
	if s.push != nil {
		if err := s.push(); err != nil {
			return nil, err
		}
	}
	return s.shared.PushDiffs(ctx, batch)
}

func (s *scripted) Counters(ctx context.Context, namespace string, windows []time.Duration, now time.Time) iter.Seq2[synced.Counter, error] {
	return func(yield func(synced.Counter, error) bool) {
		if s.counters != nil {
			if err := s.counters(ctx); err != nil {
				yield(synced.Counter{}, err)
				return
			}
		}
		for c, err := range s.shared.Counters(ctx, namespace, windows, now) {
			if !yield(c, err) {
				return
			}
		}
	}
}

// With Interval 0, an operation may need a second push. If that fails, the caller learns it, as of a reset.
func TestALaterPushThatFails(t *testing.T) {
	bind := func(s core.Store) core.Counters {
		return core.Must(s.Open("l", []core.StoreRule{{Name: "r", Limits: []core.Limit{aligned(1, time.Hour)}}}))
	}
	batch := func(cost int64) *core.Batch {
		return &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: cost, Results: make([]core.Result, 1)}}}
	}
	for name, row := range map[string]struct {
		cost  int64 // charged before
		do    func(b core.Counters) error
		fails int // of its pushes
		every time.Duration
	}{
		"a denied take gives its hits back": {1, func(b core.Counters) error { return storetest.Do(context.Background(), b, core.OpTake, batch(1)) }, 2, 0},
		"a charge above the highest count":  {core.MaxQuota, func(b core.Counters) error { return storetest.Do(context.Background(), b, core.OpCharge, batch(5)) }, 2, 0},
		"a reset":                           {1, func(b core.Counters) error { return storetest.Do(context.Background(), b, core.OpReset, batch(1)) }, 1, 0},
		"a reset beside exchanges":          {1, func(b core.Counters) error { return storetest.Do(context.Background(), b, core.OpReset, batch(1)) }, 1, time.Hour},
	} {
		backend := &scripted{shared: newShared()}
		b := bind(newStore(t, backend, synced.Config{Interval: row.every, Log: quiet}))
		if err := storetest.Do(context.Background(), b, core.OpCharge, batch(row.cost)); err != nil {
			t.Fatal(err)
		}
		pushes := 0
		backend.push = func() error {
			if pushes++; pushes == row.fails {
				return errDown
			}
			return nil
		}
		if err := row.do(b); !errors.Is(err, errDown) || pushes != row.fails {
			t.Errorf("%s: %v after %d pushes, want %v after %d", name, err, pushes, errDown, row.fails)
		}
	}
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

// The log says once that the backend fails, and once that it answers again.
// Meanwhile decisions are degraded.
func TestTheLogOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const fails = ` level=WARN msg="the shared counters do not answer; this process counts for itself" namespace=default error=`
		const works = ` level=INFO msg="the shared counters answer again" namespace=default` + "\n"
		var log logged
		defer slog.SetDefault(slog.Default())
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		b := newShared()
		b.down = true
		s := newStore(t, b, synced.Config{Interval: 10 * time.Second})
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
				peeked, _ := l.Peek(t.Context(), 1, core.Hit{Rule: "r", Key: key})
				if want := failures > recoveries; err != nil || d.Degraded != want || peeked.Degraded != want {
					t.Errorf("%s: key %q: degraded %v, want %v; error %v", what, key, d.Degraded, want, err)
				}
			}
		}
		time.Sleep(time.Minute) // exchanges without a key
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

// edited is a backend whose totals are edited.
type edited struct {
	*shared
	edit func(totals []int64) []int64
}

func (b *edited) PushDiffs(ctx context.Context, batch synced.Batch) ([]int64, error) {
	totals, err := b.shared.PushDiffs(ctx, batch)
	if err != nil {
		return nil, err
	}
	return b.edit(totals), nil
}

// A backend may answer the second try while it still works on the first, with the totals
// of before. The process does not forget its own hits for that.
func TestAnAnswerOfBeforeTheFirstTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &edited{shared: newShared()}
		tries := 0
		b.edit = func(totals []int64) []int64 {
			if tries++; tries == 2 {
				clear(totals)
			}
			return totals
		}
		s := newStore(t, b, synced.Config{Interval: time.Hour, Log: quiet})
		l := newLimiter(t, s, aligned(10, day))
		for range 7 {
			take(t, l, "k")
		}
		tries = 1
		b.set(func(b *shared) { b.lose = 1 })
		for range 2 {
			_ = s.Sync(t.Context())
			if got := left(t, l, "k"); got != 3 {
				t.Errorf("after %d tries %d left, want 3", tries, got)
			}
		}
		for i, n := range []int{0, 5} { // another number of totals than of differences
			b.edit = func([]int64) []int64 { return make([]int64, n) }
			want := fmt.Sprintf("synced: the backend returned %d totals for 2 differences", n)
			if err := s.Sync(t.Context()); err == nil || err.Error() != want || left(t, l, "k") != 3 || s.Stats().Failed != uint64(i+2) {
				t.Errorf("%v, want %s; %d left; %+v", err, want, left(t, l, "k"), s.Stats())
			}
		}
	})
}
