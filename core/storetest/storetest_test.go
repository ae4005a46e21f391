package storetest_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
)

// The store of package core is tested here, and not beside their code: what
// the tests of core import, everybody who imports core has in their go.sum.

func newMemory(t testing.TB, clock func() time.Time) core.Store {
	m, err := core.NewMemory(core.MemoryConfig{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestVectors(t *testing.T) {
	storetest.Vectors(t, newMemory)
}

func TestOperations(t *testing.T) {
	storetest.Operations(t, newMemory)
}

func TestConformance(t *testing.T) {
	storetest.Run(t, newMemory)
}

func TestGuarantees(t *testing.T) {
	promised := core.Guarantees{Ops: core.AllOps, Exact: true, OneStep: true, KeepsDeadline: true, FailsFast: true, OnFailure: core.FailClosed}
	storetest.Guarantees(t, promised, func(t testing.TB) storetest.Instances {
		return storetest.Instances{Stores: []core.Store{newMemory(t, nil), newMemory(t, nil)}}
	})
}

// wrongEnv names the fault of the store that TestWrongStore runs the suite with.
const wrongEnv = "FLOODGATE_WRONG_STORE"

// wrong is an in-process store with a fault.
type wrong struct {
	core.Store
	fault string
}

func (w wrong) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	if w.fault == "shares limiters" {
		limiter = "one for all"
	}
	c, err := w.Store.Open(limiter, rules)
	return wrongCounters{c, w.fault}, err
}

type wrongCounters struct {
	core.Counters
	fault string
}

func (w wrongCounters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	c, err := w.Counters.Reopen(rules)
	return wrongCounters{c, w.fault}, err
}

func (w wrongCounters) Do(ctx context.Context, b *core.Batch) error {
	switch {
	case b.Op&(core.OpTake|core.OpPeek) != 0:
		return w.take(ctx, b)
	case b.Op == core.OpRefund && w.fault == "forgets refunds":
		return nil
	default:
		return w.Counters.Do(ctx, b)
	}
}

func (w wrongCounters) take(ctx context.Context, b *core.Batch) error {
	switch w.fault {
	case "charges twice":
		if err := w.Counters.Do(ctx, b); err != nil || !b.Allowed {
			return err
		}
	case "charges peeks":
		b.Op = core.OpTake
	case "loses a cancelled charge":
		if ctx.Err() != nil {
			b.Op = core.OpPeek
		}
	case "takes one key after the other":
		all, allowed := b.Items, true
		defer func() { b.Items = all; b.Allowed = allowed }()
		for i := range all {
			b.Items = all[i : i+1]
			if err := w.Counters.Do(ctx, b); err != nil {
				return err
			}
			allowed = allowed && b.Allowed
		}
		return nil
	case "looks, then takes":
		op := b.Op
		b.Op = core.OpPeek
		if err := w.Counters.Do(ctx, b); err != nil || !b.Allowed || op == core.OpPeek {
			return err
		}
		for range 100 {
			runtime.Gosched()
		}
		_ = storetest.Do(ctx, w.Counters, core.OpTake, b)
		b.Allowed = true
		return nil
	case "cuts keys":
		for i := range b.Items {
			b.Items[i].Key = b.Items[i].Key[:min(250, len(b.Items[i].Key))]
		}
	}
	err := w.Counters.Do(ctx, b)
	if w.fault == "retry is early" {
		for _, item := range b.Items {
			for j := range item.Results {
				if r := &item.Results[j]; r.RetryAfter > time.Millisecond {
					r.RetryAfter -= time.Microsecond
				}
			}
		}
	}
	if w.fault == "more is late" {
		for _, item := range b.Items {
			for j := range item.Results {
				if r := &item.Results[j]; r.MoreAfter > 0 {
					r.MoreAfter += time.Microsecond
				}
			}
		}
	}
	return err
}

var faults = []string{
	"charges twice", "charges peeks", "forgets refunds", "loses a cancelled charge", "takes one key after the other",
	"looks, then takes", "cuts keys", "retry is early", "more is late", "shares limiters",
}

// TestWrongStore is the suite over a store with a fault, for the test below.
func TestWrongStore(t *testing.T) {
	fault := os.Getenv(wrongEnv)
	if fault == "" {
		return // TestTheSuiteFindsFaults runs it, with a fault
	}
	storetest.Run(t, func(t testing.TB, clock func() time.Time) core.Store {
		return wrong{newMemory(t, clock), fault}
	})
}

// suiteFails runs one of these tests in a process of its own, with a fault of the store, and returns
// whether the suite has found it.
func suiteFails(t *testing.T, test, fault string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.failfast", "-rapid.nofailfile")
	cmd.Env = append(os.Environ(), wrongEnv+"="+fault)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil && !strings.Contains(string(out), "--- FAIL: "+test) {
		t.Error("the suite ended in another way")
	}
	return err != nil
}

func TestTheSuiteFindsFaults(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			if !suiteFails(t, "TestWrongStore", fault) {
				t.Errorf("the suite passes a store that %s", fault)
			}
		})
	}
}
