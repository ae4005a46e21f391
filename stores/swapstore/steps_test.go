package swapstore_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// watched is a Swapper that notes what is swapped, and fails for some names.
type watched struct {
	*mapSwapper
	names []string
	ttls  []time.Duration
	fail  string
}

func newWatched() *watched { return &watched{mapSwapper: newMapSwapper()} }

func (s *watched) Swap(ctx context.Context, name string, old swapstore.Value, value []byte, ttl time.Duration) (bool, error) {
	if name == s.fail {
		return false, errFault
	}
	s.names, s.ttls = append(s.names, name), append(s.ttls, ttl)
	return s.mapSwapper.Swap(ctx, name, old, value, ttl)
}

var stepRules = []core.StoreRule{
	{Name: "a", Limits: []core.Limit{core.PerHour(3)}}, {Name: "b", Limits: []core.Limit{core.PerHour(3)}}, {Name: "c", Limits: []core.Limit{core.PerHour(3)}},
}

// denying returns the rules with DenyUnreadable.
func denying(rules []core.StoreRule, deny bool) []core.StoreRule {
	rules = slices.Clone(rules)
	for i := range rules {
		rules[i].DenyUnreadable = deny
	}
	return rules
}

func batchOf(costs ...int64) *core.Batch {
	batch := &core.Batch{}
	for i, c := range costs {
		batch.Items = append(batch.Items, core.Item{Rule: i, Key: []byte("k"), Cost: c, Results: make([]core.Result, 1)})
	}
	return batch
}

// The value of a key that is not charged is never written: neither when the others
// are charged, nor when these charges are given back.
func TestAKeyWithoutACostIsNotWritten(t *testing.T) {
	s := newWatched()
	b, err := core.Must(swapstore.New(s, swapstore.Config{})).Open("l", stepRules)
	if err != nil {
		t.Fatal(err)
	}
	if err := storetest.Do(t.Context(), b, core.OpTake, batchOf(1, 1, 1)); err != nil {
		t.Fatal(err)
	}
	name := func(rule string) string { return core.StoreRule{Name: rule}.StoredKey("l", []byte("k")) }
	s.names = nil
	if err := storetest.Do(t.Context(), b, core.OpTake, batchOf(0, 1, 1)); err != nil || !slices.Equal(s.names, []string{name("b"), name("c")}) {
		t.Errorf("%v; written: %q", err, s.names)
	}
	s.names, s.fail = nil, name("c")
	if err := storetest.Do(t.Context(), b, core.OpTake, batchOf(0, 1, 1)); !errors.Is(err, errFault) || !slices.Equal(s.names, []string{name("b"), name("b")}) {
		t.Errorf("%v; written: %q", err, s.names)
	}
}

// A value is kept for as long as its limit counts, from the time of the charge.
func TestTheLifetimeOfAValue(t *testing.T) {
	s, clock := newWatched(), newClock()
	b, err := core.Must(swapstore.New(s, swapstore.Config{Clock: clock.Now})).Open("l", []core.StoreRule{{Name: "r", Limits: []core.Limit{{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow}}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := storetest.Do(t.Context(), b, core.OpTake, batchOf(1)); err != nil {
			t.Fatal(err)
		}
		clock.advance(10 * time.Minute)
	}
	if want := []time.Duration{time.Hour, 50 * time.Minute}; !slices.Equal(s.ttls, want) {
		t.Errorf("kept for %v, want %v", s.ttls, want)
	}
}

// A Swapper that fails while an unreadable value is marked makes the Take fail.
func TestAMarkThatCannotBeWritten(t *testing.T) {
	for _, fails := range []bool{false, true} {
		s := newWatched()
		b, err := core.Must(swapstore.New(s, swapstore.Config{Log: slog.New(slog.DiscardHandler)})).Open("l", denying(stepRules, true))
		if err != nil {
			t.Fatal(err)
		}
		name := core.StoreRule{Name: "b"}.StoredKey("l", []byte("k"))
		s.values[name] = swapstore.Value{Value: []byte("abc"), Version: 0}
		if fails {
			s.fail = name
		}
		batch := batchOf(1, 1)
		if err := storetest.Do(t.Context(), b, core.OpTake, batch); errors.Is(err, errFault) != fails || errors.Is(err, core.ErrNotCharged) != fails || err != nil && !fails || batch.Allowed {
			t.Errorf("the Swapper fails: %v; allowed %v, %v", fails, batch.Allowed, err)
		}
	}
}

// The log tells what is done about a value that cannot be read.
func TestTheLogTellsWhatIsDone(t *testing.T) {
	for _, c := range []struct {
		value string
		deny  bool
		want  string
	}{{"abc", false, "action=replace"}, {"abc", true, "action=deny"}, {"\x07new", false, "action=deny"}, {"\x07new", true, "action=deny"}} {
		var log strings.Builder
		s := newMapSwapper()
		b, err := core.Must(swapstore.New(s, swapstore.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})).Open("l", denying(stepRules, c.deny))
		if err != nil {
			t.Fatal(err)
		}
		s.values[core.StoreRule{Name: "a"}.StoredKey("l", []byte("k"))] = swapstore.Value{Value: []byte(c.value), Version: 0}
		if err := storetest.Do(t.Context(), b, core.OpTake, batchOf(1)); err != nil || !strings.Contains(log.String(), c.want) || !strings.Contains(log.String(), "limiter=l name=fg1:l:a:") {
			t.Errorf("%q, deny %v: %v; logged %q", c.value, c.deny, err, log.String())
		}
	}
}

// A denial that ends between the reading of a value and the decision denies no more.
func TestADenialThatEndsMeanwhile(t *testing.T) {
	s, clock := newMapSwapper(), newClock()
	step := time.Duration(0) // that the clock advances each time it is asked
	now := func() time.Time { clock.advance(step); return clock.Now() }
	b, err := core.Must(swapstore.New(s, swapstore.Config{Clock: now, Log: slog.New(slog.DiscardHandler)})).Open("l", denying(stepRules, true))
	if err != nil {
		t.Fatal(err)
	}
	s.values[core.StoreRule{Name: "a"}.StoredKey("l", []byte("k"))] = swapstore.Value{Value: []byte("abc"), Version: 0}
	batch := batchOf(1)
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed {
		t.Fatal(batch.Allowed, err)
	}
	clock.advance(time.Hour - 2*time.Microsecond)
	step = time.Microsecond
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
		t.Errorf("a denial that ends at the time of the decision: allowed %v, %v", batch.Allowed, err)
	}
}
