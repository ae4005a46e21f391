package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/racetest"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// forgiving is a store whose operations have no error if they were done in this process.
type forgiving struct{ core.Store }

func (f forgiving) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := f.Store.Open(limiter, rules)
	return forgivingCounters{c}, err
}

type forgivingCounters struct{ core.Counters }

func (c forgivingCounters) Do(ctx context.Context, b *core.Batch) error {
	if err := c.Counters.Do(ctx, b); !errors.Is(err, core.ErrDegraded) {
		return err
	}
	return nil
}

func (c forgivingCounters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	next, err := c.Counters.Reopen(rules)
	return forgivingCounters{next}, err
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*link){
		"the store answers":      func(*link) {},
		"the store fails":        func(f *link) { f.fail(errGone) },
		"the store is contended": func(f *link) { f.fail(core.ErrContended) },
		"the store panics":       func(f *link) { f.panics.Store(true) },
	} {
		factory := func(failures int) storetest.Factory {
			return func(t testing.TB, clock func() time.Time) core.Store {
				f := &link{Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: clock}))}
				prepare(f)
				return forgiving{newStore(t, f, resilient.Config{Timeout: patience, Clock: clock, Failures: failures})}
			}
		}
		t.Run(name, func(t *testing.T) { storetest.Run(t, factory(1<<30)) })
		t.Run(name+": operations", func(t *testing.T) { storetest.Operations(t, factory(0)) })
		if name != "the store answers" {
			t.Run(name+": vectors", func(t *testing.T) { storetest.Vectors(t, factory(0)) })
		}
	}
}

func TestModes(t *testing.T) {
	for _, row := range []struct {
		mode resilient.Mode
		want string // of six requests at a limit of three
	}{
		{resilient.Local, "[within limits within limits within limits over limit over limit over limit]"},
		{resilient.FailOpen, "[within limits within limits within limits within limits within limits within limits]"},
		{resilient.FailClosed, "[failed failed failed failed failed failed]"},
	} {
		t.Run(row.mode.String(), func(t *testing.T) {
			var log strings.Builder
			f := newLink(nil)
			f.fail(errGone)
			s := newStore(t, f, resilient.Config{OnFailure: row.mode, Log: slog.New(slog.NewJSONHandler(&log, nil))})
			l := newLimiter(t, s, core.PerHour(3))
			var got []core.Reason
			for i := range 6 {
				d, err := take(l)
				got = append(got, d.Reason)
				if d.Degraded != (row.mode != resilient.FailClosed) || (err != nil) != (row.mode == resilient.FailClosed) {
					t.Errorf("decision %d: degraded %v, %v", i, d.Degraded, err)
				}
				if err != nil && i >= resilient.DefaultFailures && (!errors.Is(err, resilient.ErrDown) || !errors.Is(err, core.ErrNotCharged)) {
					t.Errorf("decision %d: %v, want ErrDown and ErrNotCharged", i, err)
				}
			}
			if text := fmt.Sprint(got); text != row.want { //nolint:staticcheck // a list
				t.Errorf("%v, want %v", got, row.want)
			}
			if n := f.asked.Load(); n != resilient.DefaultFailures || !strings.Contains(log.String(), fmt.Sprintf(`"on_failure":%q,`, row.mode)) {
				t.Errorf("the store was asked %d times; logged %s", n, &log)
			}
		})
	}
}

// An instance's share is the quota divided by Instances, rounded down, and 1 at least. A
// quota of 0 stays.
func TestEachInstanceHasItsShare(t *testing.T) {
	for quota, want := range map[int64]int{100: 25, 103: 25, 3: 1, 1: 1, 0: 0} {
		for _, limit := range []core.Limit{core.PerHour(quota), {Quota: 1, Window: time.Hour, Algorithm: core.TokenBucket, Burst: max(quota, 1)}} {
			f := newLink(nil)
			f.fail(errGone)
			l := newLimiter(t, newStore(t, f, resilient.Config{Instances: 4}), limit)
			if limit.Burst == 1 {
				want = 1
			}
			if n := allowed(t, l, 200, alice); n != want {
				t.Errorf("%v: %d allowed, want %d", limit, n, want)
			}
		}
	}
}

// The quotas of a request are shared in the same way; Unlimited stays.
func TestTheQuotasOfARequestAreShared(t *testing.T) {
	for quota, want := range map[int64]int{12: 3, 2: 1, 0: 0, core.Unlimited: 50} {
		f := newLink(nil)
		f.fail(errGone)
		c := core.Must(newStore(t, f, resilient.Config{Instances: 4}).Open("quotas", []core.StoreRule{{Name: "user", Limits: []core.Limit{core.PerHour(100)}}}))
		n := 0
		for range 50 {
			b := &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 1, Quotas: []int64{quota}, Results: make([]core.Result, 1)}}}
			if err := storetest.Do(t.Context(), c, core.OpTake, b); err != nil {
				t.Fatal(err)
			}
			if b.Allowed {
				n++
			}
			if b.Items[0].Quotas[0] != quota {
				t.Fatalf("the quota of the batch has become %d", b.Items[0].Quotas[0])
			}
			if r := b.Items[0].Results[0]; quota == core.Unlimited && r.Remaining != max(0, int64(25-n)) {
				t.Fatalf("%d left without a quota after %d hits, want the rest of the share of the limit's", r.Remaining, n)
			}
		}
		if n != want {
			t.Errorf("a quota of %d: %d allowed, want %d", quota, n, want)
		}
	}
}

// FailOpen reports that everything is left of each key, of the request's own quota too.
func TestWhatIsLeftWhileFailingOpen(t *testing.T) {
	f := newLink(nil)
	c := core.Must(newStore(t, f, resilient.Config{OnFailure: resilient.FailOpen}).Open("l", []core.StoreRule{{Name: "user", Limits: []core.Limit{
		core.PerHour(100), {Quota: 60, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 9},
	}}}))
	if err := storetest.Do(t.Context(), c, core.OpCharge, &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 50, Results: make([]core.Result, 2)}}}); err != nil {
		t.Fatal(err)
	}
	f.fail(errGone)
	for _, row := range []struct {
		quotas []int64
		want   [2]int64
	}{{nil, [2]int64{100, 9}}, {[]int64{7, 120}, [2]int64{7, 18}}} {
		for _, op := range []core.Op{core.OpTake, core.OpPeek, core.OpCharge} {
			b := &core.Batch{Items: []core.Item{
				{Key: []byte("another"), Cost: 1000, Results: make([]core.Result, 2)},
				{Key: []byte("k"), Cost: 1000, Quotas: row.quotas, Results: make([]core.Result, 2), Unknown: true},
			}}
			err := storetest.Do(t.Context(), c, op, b)
			it := b.Items[1]
			if err != nil || !b.Allowed || !b.Degraded || it.Unknown || it.At == 0 || it.Cost != 1000 {
				t.Errorf("%v: %+v, %v", op, b, err)
			}
			for i, r := range it.Results {
				if r != (core.Result{Allowed: true, Remaining: row.want[i]}) {
					t.Errorf("%v with quotas %v: %+v, want %d left", op, row.quotas, r, row.want[i])
				}
			}
		}
	}
}

// A charge goes the way of an allowed request: it is counted here too, and in an outage only here.
func TestCharges(t *testing.T) {
	for mode, want := range map[resilient.Mode]int64{resilient.Local: 1, resilient.FailOpen: 4, resilient.FailClosed: 4} {
		f := newLink(nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{OnFailure: mode, Failures: 1 << 30}), core.PerHour(10))
		charge := func(hits int64) error {
			d, err := take(l)
			if err != nil {
				t.Fatal(err)
			}
			if d.Degraded {
				t.Fatal("decided without the store")
			}
			f.fail(map[bool]error{true: errGone}[hits == 3])
			defer f.fail(nil)
			return l.Adjust(t.Context(), d, 1+hits)
		}
		if err := charge(4); err != nil {
			t.Fatal(err)
		}
		if err := charge(3); (err != nil) != (mode == resilient.FailClosed) {
			t.Errorf("%v: a charge in an outage: %v", mode, err)
		}
		left := func() int64 {
			d, err := l.Peek(t.Context(), 0, alice)
			if err != nil && mode != resilient.FailClosed {
				t.Fatal(err)
			}
			return d.Remaining
		}
		if n := left(); n != 4 {
			t.Errorf("%v: the store has %d left, want 4", mode, n)
		}
		if f.fail(errGone); mode == resilient.Local && left() != want {
			t.Errorf("%v: %d left here, want %d", mode, left(), want)
		}
	}
}

// An error that is of the request or of one key is decided without the store, or returned. See
// TestErrorsThatSayNothingAboutTheStore.
func TestErrorsOfTheRequest(t *testing.T) {
	for name, err := range notTheStores() {
		f := newLink(nil)
		f.fail(err)
		l := newLimiter(t, newStore(t, f, resilient.Config{}), core.PerHour(5))
		d, got := take(l)
		if decided := errors.Is(err, core.ErrContended) || errors.Is(err, core.ErrDamaged); decided != (got == nil) || d.Degraded != decided {
			t.Errorf("%s: %v, %v", name, d, got)
		}
		if got := l.Block(t.Context(), time.Hour, alice); errors.Is(err, core.ErrUnsupported) && (errors.Is(got, core.ErrDegraded) || !errors.Is(got, core.ErrUnsupported)) {
			t.Errorf("%s: a block: %v", name, got)
		}
	}
}

// Who has gone gets no decision; who has run out of time does. A charge is made for both.
func TestCallersThatDoNotWait(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	for ctx, answered := range map[context.Context]bool{gone: false, late: true} {
		f := newLink(nil)
		f.hang.Store(true)
		l := newLimiter(t, newStore(t, f, resilient.Config{Timeout: time.Millisecond}), core.PerHour(5))
		if d, err := l.Take(ctx, 1, alice); (err == nil) != answered || d.Degraded != answered {
			t.Errorf("%v: %v, %v", ctx.Err(), d, err)
		}
		d, err := take(l)
		if err != nil {
			t.Fatal(err)
		}
		left := d.Remaining
		if err := l.Adjust(ctx, d, 3); err != nil {
			t.Fatal(err)
		}
		if d, err := l.Peek(t.Context(), 0, alice); err != nil || d.Remaining != left-2 {
			t.Errorf("%v: %d left after a charge of 2 with %d left, %v", ctx.Err(), d.Remaining, left, err)
		}
	}
}

// Counters of new rules go on counting, in their shares.
func TestReopen(t *testing.T) {
	f := newLink(nil)
	var log strings.Builder
	s := newStore(t, f, resilient.Config{Instances: 2, Log: slog.New(slog.NewTextHandler(&log, nil))})
	l := newLimiter(t, s, core.PerHour(8))
	allowed(t, l, 3, alice)
	c := core.Config{Name: "l", Store: s, Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(20)}}}}
	if err := l.Reconfigure(c); err != nil {
		t.Fatal(err)
	}
	if d, err := take(l); err != nil || d.Degraded || d.Remaining != 16 {
		t.Errorf("%v, %v: want 16 left in the store", d, err)
	}
	f.fail(errGone)
	if n := allowed(t, l, 20, alice); n != 6 {
		t.Errorf("%d allowed, want 6: the rest of a share of 10", n)
	}
	if d, err := take(l); err != nil || !d.Degraded || !strings.Contains(log.String(), " limiter=l ") {
		t.Error(d, err, &log)
	}
	if err := errors.Join(f.Store.(*server).Store.(*core.Memory).Close(), l.Reconfigure(c)); !errors.Is(err, core.ErrClosed) {
		t.Errorf("the other store is closed: %v", err)
	}
}

func TestClose(t *testing.T) {
	f := newLink(nil)
	s := newStore(t, f, resilient.Config{})
	l := newLimiter(t, s, core.PerHour(5))
	f.fail(errGone)
	d, _ := take(l)
	f.fail(nil)
	c := core.Must(s.Open("second", nil))
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if degraded(t, l, alice) {
		t.Error("the other store is closed")
	}
	f.fail(errGone)
	if _, err := take(l); !errors.Is(err, core.ErrClosed) || !errors.Is(err, errGone) {
		t.Errorf("%v, want ErrClosed and the cause", err)
	}
	if err := l.Adjust(t.Context(), d, 0); !errors.Is(err, core.ErrClosed) {
		t.Errorf("the refund of a decision without the store: %v", err)
	}
	_, err := s.Open("another", nil)
	if _, again := c.Reopen(nil); !errors.Is(err, core.ErrClosed) || !errors.Is(again, core.ErrClosed) {
		t.Error(err, again)
	}
}

func TestGuarantees(t *testing.T) {
	inner := core.Guarantees{Ops: core.OpTake | core.OpPeek, Exact: true, Shared: true, OneStep: true}
	for _, row := range []struct {
		mode resilient.Mode
		is   core.OnFailure
		want core.OnFailure
	}{
		{resilient.Local, core.FailClosed, core.FailLocal},
		{resilient.Local, core.FailLocal, core.FailLocal},
		{resilient.Local, core.FailOpen, core.FailOpen},
		{resilient.FailOpen, core.FailClosed, core.FailOpen},
		{resilient.FailClosed, core.FailClosed, core.FailClosed},
		{resilient.FailClosed, core.FailLocal, core.FailLocal},
		{resilient.FailClosed, core.FailOpen, core.FailOpen},
	} {
		is, want := inner, inner
		is.OnFailure, want.OnFailure = row.is, row.want
		want.KeepsDeadline, want.FailsFast = true, true
		if got := newStore(t, &link{Store: newServer(nil), guarantees: &is}, resilient.Config{OnFailure: row.mode}).Guarantees(); got != want {
			t.Errorf("%v around %v: %+v, want %+v", row.mode, row.is, got, want)
		}
	}
}

func TestAWrongConfigurationIsNamed(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	_, err := resilient.New((*core.Memory)(nil), resilient.Config{OnFailure: 3, Instances: -1, Timeout: -1, Failures: -1, Retry: time.Microsecond})
	for _, want := range []string{
		"Store: *core.Memory: is nil: must be a store", "OnFailure: 3: must be Local, FailOpen or FailClosed",
		"Instances: -1: must be from 1 to 1048576, or 0 for 1", "Timeout: -1ns: must be 1ms or more, or 0 for 150ms",
		"Failures: -1: must be 1 or more, or 0 for 5", "Retry: 1µs: must be 1ms or more, or 0 for 1s",
	} {
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error()+"\n", ": "+want+"\n") {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	if got := fmt.Sprint(resilient.Local, resilient.FailOpen, resilient.FailClosed, resilient.Mode(3)); got != "local fail open fail closed Mode(3)" {
		t.Errorf("the modes are %q", got)
	}
	for want, c := range map[string]resilient.Config{
		"Instances: 2":       {OnFailure: resilient.FailOpen, Instances: 2},
		"Instances: 3":       {OnFailure: resilient.FailClosed, Instances: 3},
		"Instances: 1048577": {Instances: resilient.MaxInstances + 1},
		"MaxKeys: -1":        {MaxKeys: -1},
		"Timeout: 999.999µs": {Timeout: time.Millisecond - 1},
		"Retry: -1ns":        {Retry: -1},
	} {
		if _, err := resilient.New(memory, c); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if _, err := resilient.New(nil, resilient.Config{}); !errors.Is(err, core.ErrConfig) {
		t.Error(err)
	}
	for _, c := range []resilient.Config{
		{Instances: resilient.MaxInstances, Timeout: time.Millisecond, Failures: 1, Retry: time.Millisecond},
		{OnFailure: resilient.FailOpen, Instances: 1}, {OnFailure: resilient.FailClosed, Instances: 1},
	} {
		newStore(t, memory, c)
	}
}

func TestAllocations(t *testing.T) {
	f := newLink(nil)
	l := newLimiter(t, newStore(t, f, resilient.Config{}), core.PerHour(core.MaxQuota))
	for _, err := range []error{nil, errGone} {
		f.fail(err)
		for range 10 {
			_, _ = take(l)
		}
		if n := testing.AllocsPerRun(1000, func() { _, _ = take(l) }); n >= 1 && !racetest.Enabled {
			t.Errorf("the store's error %v: %v allocations a decision", err, n)
		}
	}
}
