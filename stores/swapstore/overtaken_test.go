package swapstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// one returns a batch of one key for each of the rules.
func one(cost int64, rules ...int) *core.Batch {
	batch := new(core.Batch)
	for _, rule := range rules {
		batch.Items = append(batch.Items, core.Item{Rule: rule, Key: []byte("k"), Cost: cost, Lease: 7, Results: make([]core.Result, 1)})
	}
	return batch
}

// leftOf returns how much the limit of a rule's key has left.
func leftOf(t *testing.T, b core.Counters, rule int) int64 {
	t.Helper()
	look := one(0, rule)
	if err := storetest.Do(t.Context(), b, core.OpPeek, look); err != nil {
		t.Fatal(err)
	}
	return look.Items[0].Results[0].Remaining
}

// A take that is denied halfway, because another writer was faster, gives back what it has charged,
// also leases.
func TestATakeThatIsDeniedHalfwayIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSwapper()
		b, err := core.Must(swapstore.New(s, swapstore.Config{})).Open("l", append(leased, core.StoreRule{Name: "hits", Limits: []core.Limit{core.PerHour(3)}}, core.StoreRule{Name: "c", Limits: []core.Limit{core.PerHour(2)}}))
		if err != nil {
			t.Fatal(err)
		}
		s.before = func(step int) error {
			if step == 4 { // the Swap of the last key
				s.before = nil
				if err := storetest.Do(t.Context(), b, core.OpCharge, one(2, 2)); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
		batch := one(1, 0, 1, 2)
		if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed || s.before != nil {
			t.Errorf("allowed %t, error %v", batch.Allowed, err)
		}
		if slots, hits := leftOf(t, b, 0), leftOf(t, b, 1); slots != 2 || hits != 3 {
			t.Errorf("%d slots and %d hits are left, want 2 and 3", slots, hits)
		}
	})
}

// ignorant is a Swapper that does not look at contexts, and for which somebody else is always
// faster.
type ignorant struct {
	loser
	loads int
}

func (s *ignorant) Load(ctx context.Context, names []string) ([]swapstore.Value, error) {
	s.loads++
	return s.loser.Load(ctx, names)
}

// An operation whose caller has hung up is not tried again. Its error says that it has charged nothing.
func TestACanceledOperationIsNotTriedAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, op := range []core.Op{core.OpTake, core.OpCharge, core.OpBlock} {
		s := &ignorant{loser: loser{newMapSwapper()}}
		b := core.Must(core.Must(swapstore.New(s, swapstore.Config{})).Open("l", stepRules))
		// A pause that ends at the same time may be taken for the end of the pause.
		batch := one(1, 0)
		batch.For = time.Hour
		if err := storetest.Do(ctx, b, op, batch); !errors.Is(err, context.Canceled) || s.loads > 20 || !errors.Is(err, core.ErrNotCharged) {
			t.Errorf("%v: error %v after %d attempts", op, err, s.loads)
		}
	}
}

// A refund leaves a value that cannot be read as it is.
func TestARefundLeavesAForeignValueAsItIs(t *testing.T) {
	s := newMapSwapper()
	b := core.Must(core.Must(swapstore.New(s, swapstore.Config{Log: slog.New(slog.DiscardHandler)})).Open("l", stepRules))
	for _, value := range []string{"abc", "\x07new"} {
		name := core.StoreRule{Name: "a"}.StoredKey("l", []byte("k"))
		s.values[name] = swapstore.Value{Value: []byte(value), Version: 0}
		if err := storetest.Do(t.Context(), b, core.OpRefund, one(1, 0)); err != nil || string(s.values[name].Value) != value {
			t.Errorf("%q became %q, error %v", value, s.values[name].Value, err)
		}
	}
}

// A value that cannot be read denies its key for the shortest window of its limits.
func TestHowLongAForeignValueDenies(t *testing.T) {
	for _, windows := range [][]time.Duration{{time.Hour, time.Minute}, {time.Minute, time.Hour}} {
		s := newMapSwapper()
		limits := []core.Limit{{Quota: 3, Window: windows[0]}, {Quota: 3, Window: windows[1]}}
		b := core.Must(core.Must(swapstore.New(s, swapstore.Config{Clock: newClock().Now, Log: slog.New(slog.DiscardHandler)})).Open("l", []core.StoreRule{{Name: "a", Limits: limits, DenyUnreadable: true}}))
		s.values[core.StoreRule{Name: "a"}.StoredKey("l", []byte("k"))] = swapstore.Value{Value: []byte("abc"), Version: 0}
		batch := one(1, 0)
		batch.Items[0].Results = make([]core.Result, 2)
		if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed || batch.Items[0].Results[0].RetryAfter != time.Minute {
			t.Errorf("windows %v: %v, %+v", windows, err, batch.Items[0].Results)
		}
	}
}

// The error of leases has that of each key, and never says that nothing was charged.
func TestTheErrorOfLeases(t *testing.T) {
	first := fmt.Errorf("the first: %w", core.ErrNotCharged)
	s := newSwapper()
	b := core.Must(core.Must(swapstore.New(s, swapstore.Config{})).Open("l", leased))
	batch := one(1, 0, 0)
	batch.Items[1].Key = []byte("other")
	for name, fail := range map[string]map[int]error{
		"both Swaps fail":                     {2: first, 3: errFault},
		"the second key cannot be read again": {2: first, 4: errFault},
	} {
		s.steps = 0
		s.before = func(n int) error {
			if n == 3 { // somebody else stores the second key
				s.values[core.StoreRule{Name: "r"}.StoredKey("l", []byte("other"))] = swapstore.Value{Version: -1 - len(name), Value: []byte{2}}
			}
			return fail[n]
		}
		err := storetest.Do(t.Context(), b, core.OpRenew, batch)
		if err == nil || errors.Is(err, core.ErrNotCharged) || !strings.Contains(err.Error(), "the first") || !strings.Contains(err.Error(), errFault.Error()) {
			t.Errorf("%s: error %v, want those of both keys", name, err)
		}
	}
}
