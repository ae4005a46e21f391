package memtable

import (
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// The slot of a key notes that the key holds a lease, until the last one has been released or has
// ended, wherever the limit of leases is among the rule's limits.
func TestTheSlotOfAKeyNotesItsLeases(t *testing.T) {
	limit := meter.Limit{Quota: 2, Capacity: 2, Window: hour, Algorithm: meter.InFlight}
	for _, limits := range [][]meter.Limit{{limit}, {limit, perHour(5)}, {perHour(5), limit}} {
		ts := New(100, 0)
		b := bind(t, ts, limits...)
		leases := b.layouts[0].leases
		see := func(when string, now int64, holds, open bool) {
			t.Helper()
			if p := b.open(); p.table.holding(p.slot, now) != holds || p.table.open.has(p.at) != open {
				t.Errorf("%v, %s: holds a lease: %t, open: %t; want %t and %t", limits, when, p.table.holding(p.slot, now), p.table.open.has(p.at), holds, open)
			}
		}
		p := b.open()
		if p.Renew(nil, now0, 1, 0); ts.Len() != 0 {
			t.Errorf("%v: a renewal of no slots inserts the key", limits)
		}
		p.Release(now0, 1) // of a key that is not there
		p.Insert(nil, now0)
		var r meter.Result
		p.Lease(leases, meter.Own, now0, 1, 1, &r)
		see("a lease", now0, true, false)
		see("a lease, before its end", now0+hour-1, true, false)
		see("a lease, at its end", now0+hour, false, false)
		p = b.open()
		p.Renew(nil, now0+second, 2, 1)
		if p.Release(now0+second, 1); !p.table.holding(p.slot, now0+hour) {
			t.Errorf("%v: the second lease ends with the first one", limits)
		}
		see("the first one is released", now0+second, true, false)
		p = b.open()
		p.Release(now0+second, 2)
		see("both are released", now0+second, false, true)
		if s := p.shard; !s.hasLeases() {
			t.Errorf("%v: the shard has no rule with leases", limits)
		}
	}
	ts := New(100, 0)
	p := bind(t, ts, perHour(5)).open()
	if p.Renew(nil, now0, 1, 1); ts.Len() != 0 {
		t.Error("a renewal inserts a key of a rule without leases")
	}
	p.Insert(nil, now0)
	if p.Release(now0, 1); p.shard.hasLeases() || p.table.holding(p.slot, now0) {
		t.Error("a rule without leases has leases")
	}
}
