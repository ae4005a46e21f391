package swapstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// mapSwapper is the plainest Swapper.
type mapSwapper struct {
	mu      sync.Mutex
	values  map[string]swapstore.Value
	version int
}

func newMapSwapper() *mapSwapper { return &mapSwapper{values: map[string]swapstore.Value{}} }

func (m *mapSwapper) Load(_ context.Context, names []string) ([]swapstore.Value, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	values := make([]swapstore.Value, len(names))
	for i, n := range names {
		values[i] = m.values[n]
	}
	return values, nil
}

func (m *mapSwapper) Swap(_ context.Context, name string, old swapstore.Value, value []byte, ttl time.Duration) (bool, error) {
	if ttl <= 0 {
		return false, fmt.Errorf("ttl %v", ttl)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values[name].Version != old.Version {
		return false, nil
	}
	m.version++
	m.values[name] = swapstore.Value{Value: value, Version: m.version}
	return true, nil
}

func (m *mapSwapper) Delete(_ context.Context, names []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range names {
		delete(m.values, n)
	}
	return nil
}

func newSwapStore(_ testing.TB, clock func() time.Time) core.Store {
	// So many take at once in the suite that an attempt fails often.
	return core.Must(swapstore.New(newMapSwapper(), swapstore.Config{Clock: clock, Attempts: 10_000}))
}

// A value that somebody else has written counts as none.
func TestForeignStoredValuesAreReplaced(t *testing.T) {
	rule := []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(3), {Quota: 3, Window: time.Hour, Algorithm: core.SlidingLog}}}}
	for _, foreign := range []string{"", "abc", "5 ", "\x01", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x02rest"} {
		s := newMapSwapper()
		b, err := core.Must(swapstore.New(s, swapstore.Config{})).Open("l", rule)
		if err != nil {
			t.Fatal(err)
		}
		s.values[core.StoreRule{Name: "r"}.StoredKey("l", []byte("k"))] = swapstore.Value{Value: []byte(foreign), Version: 0}
		batch := &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 1, Results: make([]core.Result, 2)}}}
		for i := range 4 {
			if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed != (i < 3) {
				t.Errorf("value %q, take %d: allowed %v, error %v", foreign, i+1, batch.Allowed, err)
			}
		}
	}
}

// A value of the format that is longer than any program's is somebody else's.
func TestALongStoredValueCountsAsNone(t *testing.T) {
	const most = 1<<20 + 128<<10 // of a rule of one limit
	name := core.StoreRule{Name: "r"}.StoredKey("l", []byte("k"))
	for size, readable := range map[int]bool{most: true, most + 1: false} {
		s, clock := newMapSwapper(), storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
		quiet := slog.New(slog.DiscardHandler)
		b, err := core.Must(swapstore.New(s, swapstore.Config{Clock: clock.Now, Log: quiet})).Open("l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(3)}}})
		if err != nil {
			t.Fatal(err)
		}
		take := func() int64 {
			batch := &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 1, Results: make([]core.Result, 1)}}}
			if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
				t.Fatalf("allowed %v, error %v", batch.Allowed, err)
			}
			return batch.Items[0].Results[0].Remaining
		}
		take()
		value := s.values[name].Value
		// A record of a kind that no program has yet: three bytes of length, the
		// expiry, the kind, and the rest.
		body := append(binary.AppendVarint(nil, clock.Now().Add(time.Hour).UnixMicro()), 44)
		body = append(body, make([]byte, size-len(value)-3-len(body))...)
		value = append(binary.AppendUvarint(value, uint64(len(body))), body...)
		if len(value) != size {
			t.Fatalf("%d bytes, want %d", len(value), size)
		}
		s.values[name] = swapstore.Value{Value: value, Version: 0}
		want := int64(2)
		if readable {
			want = 1
		}
		if got := take(); got != want {
			t.Errorf("%d bytes: %d remain of 3 after two hits, want %d", size, got, want)
		}
	}
}

// loser is a Swapper for which somebody else is always faster.
type loser struct{ *mapSwapper }

func (loser) Swap(context.Context, string, swapstore.Value, []byte, time.Duration) (bool, error) {
	return false, nil
}

func TestASwapStoreGivesUpAfterItsAttempts(t *testing.T) {
	l := core.Must(core.New(core.Config{
		Name: "l", Store: core.Must(swapstore.New(loser{newMapSwapper()}, swapstore.Config{Attempts: 3})),
		Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(3)}}},
	}))
	if d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r"}); !errors.Is(err, core.ErrContended) || d.Allowed || d.Reason != core.ReasonFailed {
		t.Errorf("decision %v, error %v", d, err)
	}
}

// hangup is a Swapper whose caller goes away after the first Swap.
type hangup struct {
	*mapSwapper
	cancel context.CancelFunc
}

func (h hangup) Load(ctx context.Context, names []string) ([]swapstore.Value, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return h.mapSwapper.Load(ctx, names)
}

func (h hangup) Swap(ctx context.Context, name string, old swapstore.Value, value []byte, ttl time.Duration) (bool, error) {
	defer h.cancel()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return h.mapSwapper.Swap(ctx, name, old, value, ttl)
}

func TestATakeThatIsCanceledHalfwayIsRefunded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := core.Must(core.New(core.Config{
		Name: "l", Store: core.Must(swapstore.New(hangup{newMapSwapper(), cancel}, swapstore.Config{})),
		Rules: []core.Rule{
			{Name: "a", Limits: []core.Limit{core.PerHour(3)}},
			{Name: "b", Limits: []core.Limit{core.PerHour(3)}},
		},
	}))
	hits := []core.Hit{{Rule: "a", Key: "k"}, {Rule: "b", Key: "k"}}
	if d, err := l.Take(ctx, 1, hits...); !errors.Is(err, context.Canceled) || d.Allowed {
		t.Fatalf("decision %v, error %v", d, err)
	}
	for _, hit := range hits {
		if d, err := l.Peek(t.Context(), 0, hit); err != nil || d.Remaining != 3 {
			t.Errorf("rule %q: %d left, want 3; error %v", hit.Rule, d.Remaining, err)
		}
	}
}

func TestNewSwapStoreNamesWhatIsWrong(t *testing.T) {
	for _, nothing := range []swapstore.Swapper{nil, (*mapSwapper)(nil)} {
		if _, err := swapstore.New(nothing, swapstore.Config{}); !errors.Is(err, core.ErrConfig) {
			t.Errorf("without a swapper: %v", err)
		}
	}
	if _, err := swapstore.New(newMapSwapper(), swapstore.Config{Attempts: -1}); !errors.Is(err, core.ErrConfig) {
		t.Errorf("attempts -1: %v", err)
	}
}

func newSharedSwapStores(_ testing.TB, clocks ...func() time.Time) (stores []core.Store) {
	m := newMapSwapper()
	for _, clock := range clocks {
		stores = append(stores, core.Must(swapstore.New(m, swapstore.Config{Clock: clock})))
	}
	return stores
}

func TestShared(t *testing.T) { storetest.Shared(t, newSharedSwapStores) }

// If the rule demands it, a value that cannot be read denies its key for the shortest window;
// the value of a newer version always does.
func TestForeignStoredValuesDenyTheirKey(t *testing.T) {
	name := core.StoreRule{Name: "r"}.StoredKey("l", []byte("k"))
	for what, c := range map[string]struct {
		value string
		rule  bool
		kept  bool
	}{
		"the rule's demand": {"abc", true, false},
		"a newer version":   {"\x07new", false, true},
	} {
		t.Run(what, func(t *testing.T) {
			var log strings.Builder
			clock, s := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789)), newMapSwapper()
			store := core.Must(swapstore.New(s, swapstore.Config{Clock: clock.Now, Log: slog.New(slog.NewTextHandler(&log, nil))}))
			rules := []core.StoreRule{{Name: "r", DenyUnreadable: c.rule, Limits: []core.Limit{{Quota: 50, Window: 24 * time.Hour}, core.PerHour(3)}}}
			b, err := store.Open("l", rules)
			if err != nil {
				t.Fatal(err)
			}
			s.values[name] = swapstore.Value{Value: []byte(c.value), Version: 0}
			take := func() *core.Batch {
				batch := &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 1, Results: make([]core.Result, 2)}}}
				if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
					t.Fatal(err)
				}
				return batch
			}
			for range 3 {
				batch := take()
				if r := batch.Items[0].Results[0]; batch.Allowed || r.Allowed || r.RetryAfter > time.Hour || r.RetryAfter < 50*time.Minute || r.Remaining != 0 {
					t.Errorf("allowed %v, %+v", batch.Allowed, r)
				}
				if err := storetest.Do(t.Context(), b, core.OpRefund, batch); err != nil {
					t.Fatal(err)
				}
				clock.Advance(time.Minute)
			}
			if got := string(s.values[name].Value); (got == c.value) != c.kept {
				t.Errorf("stored %q", got)
			}
			if n := strings.Count(log.String(), "cannot be read"); n < 1 || n > 3 {
				t.Errorf("logged %q", log.String())
			}
			if !c.kept { // a clock that is set back locks nobody out by the mark
				mark := s.values[name]
				now := clock.Now()
				clock.Advance(-3*time.Minute - time.Hour)
				if !take().Allowed {
					t.Error("denied when the clock was set back by a window")
				}
				clock.Set(now)
				s.values[name] = mark
			}
			clock.Advance(57*time.Minute - time.Microsecond)
			if take().Allowed {
				t.Error("allowed before an hour has passed")
			}
			clock.Advance(time.Microsecond)
			if take().Allowed == c.kept {
				t.Errorf("allowed after an hour: %v", !c.kept)
			}
		})
	}
}

func TestAPeekWithoutCostLeavesAForeignValueAsItIs(t *testing.T) {
	s, name := newMapSwapper(), core.StoreRule{Name: "r"}.StoredKey("l", []byte("k"))
	store := core.Must(swapstore.New(s, swapstore.Config{Log: slog.New(slog.DiscardHandler)}))
	b, err := store.Open("l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(3)}, DenyUnreadable: true}})
	if err != nil {
		t.Fatal(err)
	}
	s.values[name] = swapstore.Value{Value: []byte("abc"), Version: 0}
	batch := &core.Batch{Items: []core.Item{{Key: []byte("k"), Results: make([]core.Result, 1)}}}
	if err := storetest.Do(t.Context(), b, core.OpPeek, batch); err != nil || !batch.Allowed || !batch.Items[0].Results[0].Allowed || batch.Items[0].Results[0].Remaining != 0 {
		t.Errorf("%+v, error %v", batch, err)
	}
	if got := string(s.values[name].Value); got != "abc" {
		t.Errorf("stored %q, want what was there", got)
	}
}
