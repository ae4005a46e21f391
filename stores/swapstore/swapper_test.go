package swapstore_test

import (
	"context"
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

// swapper is a Swapper of values in memory. Its operations fail if their context
// has ended, unless it is deaf.
type swapper struct {
	deaf    bool
	mu      sync.Mutex
	values  map[string]swapstore.Value
	version int
	swaps   []swap // that have been done

	steps  int
	before func(step int) error // is called before each operation, with its number from 1
}

type swap struct {
	name string
	ttl  time.Duration
}

func newSwapper() *swapper { return &swapper{values: map[string]swapstore.Value{}} }

func (s *swapper) step(ctx context.Context) error {
	if s.before != nil {
		s.steps++
		if err := s.before(s.steps); err != nil {
			return err
		}
	}
	if s.deaf {
		return nil
	}
	return ctx.Err()
}

func (s *swapper) Load(ctx context.Context, names []string) ([]swapstore.Value, error) {
	if err := s.step(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	values := make([]swapstore.Value, len(names))
	for i, n := range names {
		values[i] = s.values[n]
	}
	return values, nil
}

func (s *swapper) Swap(ctx context.Context, name string, old swapstore.Value, value []byte, ttl time.Duration) (bool, error) {
	if err := s.step(ctx); err != nil {
		return false, err
	}
	if ttl <= 0 {
		return false, fmt.Errorf("ttl %v", ttl)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[name].Version != old.Version {
		return false, nil
	}
	s.version++
	s.values[name] = swapstore.Value{Value: value, Version: s.version}
	s.swaps = append(s.swaps, swap{name, ttl})
	return true, nil
}

func (s *swapper) Delete(ctx context.Context, names []string) error {
	if err := s.step(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range names {
		delete(s.values, n)
	}
	return nil
}

// at makes operations fail, or does something before them, from now on.
func (s *swapper) at(before func(step int) error) { s.steps, s.before = 0, before }

// overtake stores the value of a name again, as another writer that is faster.
func (s *swapper) overtake(name string) {
	s.version++
	s.values[name] = swapstore.Value{Value: s.values[name].Value, Version: s.version}
}

// put stores a value as another program.
func (s *swapper) put(name, value string) {
	s.version++
	s.values[name] = swapstore.Value{Value: []byte(value), Version: s.version}
}

// stored returns the name of the key k of a rule of the limiter l.
func stored(rule string) string { return core.StoreRule{Name: rule}.StoredKey("l", []byte("k")) }

var errFault = errors.New("the swapper failed")

type clock struct{ now time.Time }

func newClock() *clock                   { return &clock{time.UnixMicro(1_764_000_123_456_789)} }
func (c *clock) Now() time.Time          { return c.now }
func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

var quiet = slog.New(slog.DiscardHandler)

// world is a limiter's counters, over a swapper and with a clock that a test sets.
type world struct {
	*swapper
	t        *testing.T
	clock    *clock
	counters core.Counters
	rules    []core.StoreRule
}

func newWorld(t *testing.T, log *slog.Logger, rules ...core.StoreRule) *world {
	t.Helper()
	w := &world{swapper: newSwapper(), t: t, clock: newClock(), rules: rules}
	w.counters = core.Must(core.Must(swapstore.New(w.swapper, swapstore.Config{Clock: w.clock.Now, Log: log, Attempts: 8})).Open("l", rules))
	return w
}

// hourly is a rule of three hits an hour.
func hourly(name string) core.StoreRule {
	return core.StoreRule{Name: name, Limits: []core.Limit{core.PerHour(3)}}
}

// batch returns the key k of each rule with these costs, one after the other.
func (w *world) batch(costs ...int64) *core.Batch {
	b := new(core.Batch)
	for i, cost := range costs {
		b.Items = append(b.Items, core.Item{Rule: i, Key: []byte("k"), Cost: cost, Results: make([]core.Result, len(w.rules[i].Limits))})
	}
	return b
}

func (w *world) try(op core.Op, costs ...int64) error {
	return storetest.Do(w.t.Context(), w.counters, op, w.batch(costs...))
}

func (w *world) do(op core.Op, costs ...int64) *core.Batch {
	w.t.Helper()
	b := w.batch(costs...)
	if err := storetest.Do(w.t.Context(), w.counters, op, b); err != nil {
		w.t.Fatalf("%v: %v", op, err)
	}
	return b
}

// left returns how much the first limit of each rule's key has left.
func (w *world) left() (left []int64) {
	w.t.Helper()
	w.before = nil
	for _, it := range w.do(core.OpPeek, make([]int64, len(w.rules))...).Items {
		left = append(left, it.Results[0].Remaining)
	}
	return left
}

func newSwapStore(_ testing.TB, clock func() time.Time) core.Store {
	s := newSwapper()
	s.deaf = true // the suite's callers go, and what they have asked for must be done
	// So many take at once in the suite that an attempt fails often.
	return core.Must(swapstore.New(s, swapstore.Config{Clock: clock, Attempts: 10_000, Log: quiet}))
}

func TestVectors(t *testing.T) { storetest.Vectors(t, newSwapStore) }

func TestOperations(t *testing.T) { storetest.Operations(t, newSwapStore) }

func TestConformance(t *testing.T) { storetest.Run(t, newSwapStore, storetest.GivesBack()) }

func TestShared(t *testing.T) {
	storetest.Shared(t, func(_ testing.TB, clocks ...func() time.Time) (stores []core.Store) {
		s := newSwapper()
		for _, clock := range clocks {
			stores = append(stores, core.Must(swapstore.New(s, swapstore.Config{Clock: clock, Log: quiet})))
		}
		return stores
	})
}

func TestGuarantees(t *testing.T) {
	storetest.Guarantees(t, core.Guarantees{Ops: core.AllOps &^ core.OpResetAll, Exact: true, Shared: true, OnFailure: core.FailClosed}, func(testing.TB) storetest.Instances {
		swapper := newSwapper()
		store := func() core.Store { return core.Must(swapstore.New(swapper, swapstore.Config{Attempts: 100_000})) }
		return storetest.Instances{Stores: []core.Store{store(), store()}}
	})
}

func TestNewSwapStoreNamesWhatIsWrong(t *testing.T) {
	for _, nothing := range []swapstore.Swapper{nil, (*swapper)(nil)} {
		if _, err := swapstore.New(nothing, swapstore.Config{}); !errors.Is(err, core.ErrConfig) || !strings.HasSuffix(err.Error(), fmt.Sprintf(": Swapper: %T: is nil: must be a Swapper", nothing)) {
			t.Errorf("without a swapper: %v", err)
		}
	}
	if _, err := swapstore.New(newSwapper(), swapstore.Config{Attempts: -1}); !errors.Is(err, core.ErrConfig) || !strings.HasSuffix(err.Error(), ": Attempts: -1: must be 1 or more, or 0 for 32") {
		t.Errorf("attempts -1: %v", err)
	}
}
