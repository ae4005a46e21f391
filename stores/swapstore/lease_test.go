package swapstore_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
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
	b, err := core.Must(swapstore.New(s, swapstore.Config{Clock: c.Now})).Open("l", leased)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what   string
		pass   time.Duration
		op     core.Op
		batch  *core.Batch
		writes int
		left   int64
	}{
		{"a renewal of no cost is no lease", 0, core.OpRenew, leasesOf(0, 1), 0, 2},
		{"nor is one of less", 0, core.OpRenew, leasesOf(-1, 1), 0, 2},
		{"the leases of a key are renewed in one step", 0, core.OpRenew, leasesOf(1, 1, 2), 1, 0},
		{"a lease that was never given is not released", 0, core.OpRelease, leasesOf(1, 3), 0, 0},
		{"one lease lasts for longer", 30 * time.Minute, core.OpRenew, leasesOf(1, 2), 1, 0},
		{"a lease that has ended is not released", 45 * time.Minute, core.OpRelease, leasesOf(1, 1), 0, 1},
		{"a lease is released once", 0, core.OpRelease, leasesOf(1, 2), 1, 2},
		{"and not again", 0, core.OpRelease, leasesOf(1, 2), 0, 2},
	} {
		c.advance(step.pass)
		before := s.version
		if err := storetest.Do(t.Context(), b, step.op, step.batch); err != nil {
			t.Fatal(step.what, err)
		}
		if n := s.version - before; n != step.writes {
			t.Errorf("%s: the value is written %d times, want %d", step.what, n, step.writes)
		}
		peek := leasesOf(0, 0)
		if err := storetest.Do(t.Context(), b, core.OpPeek, peek); err != nil || peek.Items[0].Results[0].Remaining != step.left {
			t.Errorf("%s: %v, %d slots left, want %d", step.what, err, peek.Items[0].Results[0].Remaining, step.left)
		}
	}
}
