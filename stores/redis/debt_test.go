package redisstore_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// debt returns until when the first limit of the key k is owed something, since a time,
// and the part of a microsecond above that.
func (f *formatted) debt(start time.Time) (until time.Duration, part int64) {
	f.t.Helper()
	v := string(f.value())
	const state = 18 // behind the version, the record's head and the limit's identity
	if len(v) < state+15 {
		f.t.Fatalf("the value %x has no state of a token bucket", v)
	}
	return time.UnixMicro(number(v[state:], 7)).Sub(start), number(v[state+7:], 4)
}

// A debt of a microsecond is stored.
func TestStoredDebts(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 1000, Window: time.Millisecond, Algorithm: core.TokenBucket})
	start := f.clock.Now()
	f.take()
	if until, part := f.debt(start); until != time.Microsecond || part != 0 {
		t.Errorf("owed until %v and %d parts", until, part)
	}
}

// A refund takes off what is still owed of its charge, and no part of a microsecond more.
func TestARefundOfADebt(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 3, Window: time.Second, Algorithm: core.TokenBucket})
	start := f.clock.Now()
	first := f.take() // 333,333 and a third of a microsecond
	f.take()
	f.clock.Advance(time.Microsecond)
	if err := storetest.Do(t.Context(), f.bound, core.OpRefund, first); err != nil {
		t.Fatal(err)
	}
	if until, part := f.debt(start); until != 333_333*time.Microsecond || part != 2 {
		t.Errorf("owed until %v and %d parts, want 333.333ms and 2", until, part)
	}
}

// A grant at the beginning of a sliding window takes off hits of the one before, which
// count in full.
func TestAGrantAtTheBeginningOfAWindow(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 10_000, Window: time.Millisecond})
	batch := one("k", 5000, 1)
	if err := storetest.Do(t.Context(), f.bound, core.OpTake, batch); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(time.Millisecond)
	batch = one("k", 2000, 1)
	if err := storetest.Do(t.Context(), f.bound, core.OpGrant, batch); err != nil {
		t.Fatal(err)
	}
	if got := batch.Items[0].Results[0].Remaining; got != 7000 {
		t.Errorf("%d remain of 10,000, want 7,000", got)
	}
}
