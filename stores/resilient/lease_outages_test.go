package resilient

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// leasing is a store of leases that calls renewed before each renewal.
type leasing struct {
	core.Bound
	renewed func()
}

func (l leasing) Renew(ctx context.Context, batch *core.Batch) error {
	l.renewed()
	return l.Bound.(core.Leaser).Renew(ctx, batch)
}

func (l leasing) Release(ctx context.Context, batch *core.Batch) error {
	return l.Bound.(core.Leaser).Release(ctx, batch)
}

func bindLeases(t *testing.T) *bound {
	t.Helper()
	s := core.Must(New(core.Must(core.NewMemory(core.MemoryConfig{})), Config{Failures: 1, Retry: time.Hour, Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(func() { _ = s.Close() })
	return core.Must(s.Bind("l", []core.StoreRule{{Name: "user", Limits: []core.Limit{core.InFlight(2)}}})).(*bound)
}

// newLease returns a batch with a lease of a key.
func newLease(key string) *core.Batch {
	b := newHit()
	b.Items[0].Key, b.Items[0].Lease = []byte(key), 1
	return b
}

// While the store is told of a lease, it may go away and lose it: then it is told once more.
func TestAnOutageWhileTheStoreIsToldOfLeases(t *testing.T) {
	for name, tell := range map[string]func(b *bound, batch *core.Batch) error{
		"Renew": func(b *bound, batch *core.Batch) error { return b.Renew(context.Background(), batch) },
		"Take":  func(b *bound, batch *core.Batch) error { return b.tell(context.Background(), batch) },
	} {
		b, batch, goes := bindLeases(t), newLease("alice"), true
		b.inner = leasing{b.inner, func() {
			if goes {
				b.circuits.whole.outages.Add(1)
			}
		}}
		b.hold(batch, withoutIt)
		for _, goes = range []bool{true, false} {
			if err := tell(b, batch); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := b.unknownSlots(&batch.Items[0]); got != goes {
				t.Errorf("%s: the store goes away meanwhile: %t; it may not know the lease: %t, want %t", name, goes, got, goes)
			}
		}
	}
}

// When the store has been told that nobody holds the leases of a key, nothing is kept of the key.
func TestNothingIsKeptOfLeasesThatAreOver(t *testing.T) {
	b, batch := bindLeases(t), newLease("alice")
	b.orphan(batch)
	if err := b.tell(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if n := len(b.slots.keys); n != 0 {
		t.Errorf("got %d keys, want none", n)
	}
}

// A release on several servers fails if one of them is down, whichever it is.
func TestAReleaseOnAServerThatIsDown(t *testing.T) {
	for _, down := range []string{"a", "b"} {
		b := bindLeases(t)
		b.where = byKey{}
		tickets, err := b.circuits.allow(b.where, newLease(down))
		if err != nil {
			t.Fatal(err)
		}
		tickets.done(errAway, true)
		batch := newLease("a")
		batch.Items = append(batch.Items, newLease("b").Items...)
		if err := b.Release(t.Context(), batch); !errors.Is(err, ErrDown) {
			t.Errorf("the server of key %s is down: got %v, want %v", down, err, ErrDown)
		}
	}
}
