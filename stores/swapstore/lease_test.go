package swapstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// leased is a rule of two slots of a key, whose leases last an hour.
var leased = []core.StoreRule{{Name: "r", Limits: []core.Limit{{Name: "slots", Quota: 2, Window: time.Hour, Algorithm: core.Leases}}}}

// leasesOf returns a batch of leases of one key.
func leasesOf(cost int64, leases ...uint64) *core.Batch {
	b := new(core.Batch)
	for _, lease := range leases {
		b.Items = append(b.Items, core.Item{Key: []byte("k"), Cost: cost, Lease: lease, Results: make([]core.Result, 1)})
	}
	return b
}

func TestWhatIsWrittenOfLeases(t *testing.T) {
	c, s := newClock(), newMapSwapper()
	b, err := core.Must(swapstore.New(s, swapstore.Config{Clock: c.Now})).Bind("l", leased)
	if err != nil {
		t.Fatal(err)
	}
	leaser := b.(core.Leaser)
	for _, step := range []struct {
		what   string
		pass   time.Duration
		do     func(context.Context, *core.Batch) error
		batch  *core.Batch
		writes int
		left   int64
	}{
		{"a renewal of no cost is no lease", 0, leaser.Renew, leasesOf(0, 1), 0, 2},
		{"nor is one of less", 0, leaser.Renew, leasesOf(-1, 1), 0, 2},
		{"the leases of a key are renewed in one step", 0, leaser.Renew, leasesOf(1, 1, 2), 1, 0},
		{"a lease that was never given is not released", 0, leaser.Release, leasesOf(1, 3), 0, 0},
		{"one lease lasts for longer", 30 * time.Minute, leaser.Renew, leasesOf(1, 2), 1, 0},
		{"a lease that has ended is not released", 45 * time.Minute, leaser.Release, leasesOf(1, 1), 0, 1},
		{"a lease is released once", 0, leaser.Release, leasesOf(1, 2), 1, 2},
		{"and not again", 0, leaser.Release, leasesOf(1, 2), 0, 2},
	} {
		c.advance(step.pass)
		before := s.version
		if err := step.do(t.Context(), step.batch); err != nil {
			t.Fatal(step.what, err)
		}
		if n := s.version - before; n != step.writes {
			t.Errorf("%s: the value is written %d times, want %d", step.what, n, step.writes)
		}
		peek := leasesOf(0, 0)
		peek.Peek = true
		if err := b.Take(t.Context(), peek); err != nil || peek.Items[0].Results[0].Remaining != step.left {
			t.Errorf("%s: %v, %d slots left, want %d", step.what, err, peek.Items[0].Results[0].Remaining, step.left)
		}
	}
}
