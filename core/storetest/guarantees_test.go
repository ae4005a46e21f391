package storetest_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
)

// liar is a store that several instances share, and that says of itself what is not true.
type liar struct {
	says  core.Guarantees
	fault string
	gone  *atomic.Bool
	meet  *meeting
}

// atOnce is how many takes of the same keys the suite runs at a time.
const atOnce = 4

// meeting holds takes until atOnce of them have come.
type meeting struct {
	mu   sync.Mutex
	came int
	all  chan struct{}
}

func (m *meeting) wait() {
	m.mu.Lock()
	if m.came%atOnce == 0 {
		m.all = make(chan struct{})
	}
	m.came++
	all := m.all
	if m.came%atOnce == 0 {
		close(all)
	}
	m.mu.Unlock()
	<-all
}

func (l liar) Guarantees() core.Guarantees { return l.says }

type liarCounters struct {
	core.Counters
	l liar
}

func (b liarCounters) Do(ctx context.Context, batch *core.Batch) error {
	if batch.Op&(core.OpTake|core.OpPeek) == 0 {
		return b.Counters.Do(ctx, batch)
	}
	if b.l.gone.Load() {
		switch b.l.fault {
		case "opens", "opens instead of counting":
			batch.Allowed = true
			return nil
		case "hangs":
			select {}
		case "waits each time":
			<-time.After(200 * time.Millisecond)
		}
		return errors.New("gone")
	}
	if b.l.fault == "takes one by one" && len(batch.Items) > 1 {
		return b.takeOneByOne(ctx, batch)
	}
	return b.Counters.Do(ctx, batch)
}

// takeOneByOne charges the first item, then the rest, and gives the first back
// if the rest is denied. Of takes in both orders of two keys with a quota of 1,
// each key's first take is admitted, and every take of the rest denied.
func (b liarCounters) takeOneByOne(ctx context.Context, batch *core.Batch) error {
	one := core.Batch{Op: batch.Op, Items: batch.Items[:1]}
	rest := core.Batch{Op: batch.Op, Items: batch.Items[1:]}
	err := b.Counters.Do(ctx, &one)
	b.l.meet.wait() // each key is charged now
	if err == nil && one.Allowed {
		err = b.Counters.Do(ctx, &rest)
	}
	b.l.meet.wait() // nothing has been given back yet
	if batch.Allowed = one.Allowed && rest.Allowed; one.Allowed && !rest.Allowed {
		_ = storetest.Do(ctx, b.Counters, core.OpRefund, &one)
	}
	return err
}

// newLiars returns the guarantees that a store with this fault returns.
func newLiars(t testing.TB, fault string) (core.Guarantees, storetest.Instances) {
	says := core.Guarantees{Ops: core.AllOps, Exact: true, OneStep: true, Shared: true, KeepsDeadline: true, FailsFast: true, OnFailure: core.FailClosed}
	switch fault {
	case "opens instead of counting":
		says.OnFailure = core.FailLocal
	case "shares what it calls private":
		says.Shared = false
	}
	limit := core.Limit{Name: "l", Quota: 100, Window: 24 * time.Hour, Algorithm: core.FixedWindow, Aligned: true}
	bind := func(quota int64) core.Counters {
		limit.Quota = quota
		return core.Must(newMemory(t, nil).Open("l", []core.StoreRule{{Name: "a", Limits: []core.Limit{limit}}, {Name: "b", Limits: []core.Limit{limit}}}))
	}
	in, gone, meet := storetest.Instances{}, new(atomic.Bool), new(meeting)
	in.Gone = func() { gone.Store(true) }
	quotas := bound{bind: bind, own: fault == "counts for itself"}
	for range 2 {
		in.Stores = append(in.Stores, quotaStore{liar{says: says, fault: fault, gone: gone, meet: meet}, &quotas})
	}
	return says, in
}

// bound gives the instances the same Counters, or each its own.
type bound struct {
	bind   func(quota int64) core.Counters
	own    bool
	shared core.Counters
}

type quotaStore struct {
	liar
	all *bound
}

func (s quotaStore) Open(_ string, rules []core.StoreRule) (core.Counters, error) {
	if s.all.shared == nil || s.all.own {
		s.all.shared = s.all.bind(rules[0].Limits[0].Quota)
	}
	return liarCounters{s.all.shared, s.liar}, nil
}

var lies = []string{"counts for itself", "shares what it calls private", "takes one by one", "opens", "opens instead of counting", "hangs", "waits each time"}

// TestLiar is Guarantees over a store that says what is not true, for the test below.
func TestLiar(t *testing.T) {
	fault := os.Getenv(wrongEnv)
	if fault == "" {
		return // TestTheSuiteFindsLies runs it, with a fault
	}
	says, _ := newLiars(t, fault)
	storetest.Guarantees(t, says, func(t testing.TB) storetest.Instances {
		_, in := newLiars(t, fault)
		return in
	})
}

func TestTheSuiteFindsLies(t *testing.T) {
	for _, fault := range append(lies, "none") {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			if suiteFails(t, "TestLiar", fault) != (fault != "none") {
				t.Errorf("the suite is wrong about a store that %s", fault)
			}
		})
	}
}
