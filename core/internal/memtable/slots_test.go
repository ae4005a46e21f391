package memtable

import (
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// A slot of the table is closed while its key holds a lease, and while it is denied: see search.
func TestSlotsAreNotedInTheTable(t *testing.T) {
	leases := func(quota int64) meter.Limit {
		return meter.Limit{Quota: quota, Capacity: quota, Window: hour, Algorithm: meter.InFlight}
	}
	b := bind(t, New(100), leases(1))
	k := b.Slots(0)
	var r meter.Result
	if k.Take("k", now0, 1, &r) || k.Release("k", now0, 1) {
		t.Error("the rule has no table yet")
	}
	p := b.open()
	p.Insert(nil, now0)
	see := func(when string, holds, open bool) {
		t.Helper()
		if p := b.open(); p.table.holding(p.slot, now0) != holds || p.table.open.has(p.at) != open {
			t.Errorf("%s: holds a lease: %t, open: %t; want %t and %t", when, !holds, !open, holds, open)
		}
	}
	if k.Take("other", now0, 1, &r) || k.Release("other", now0, 1) {
		t.Error("the key is not in the table")
	}
	if !k.Take("k", now0, 1, &r) || !r.Allowed || r.Remaining != 0 {
		t.Errorf("the first one: %+v", r)
	}
	see("a lease", true, false)
	if !k.Take("k", now0+1, 2, &r) || r.Allowed || r.RetryAfter == 0 {
		t.Errorf("the second one: %+v", r)
	}
	if !k.Release("k", now0, 2) {
		t.Error("a lease that was not given cannot be released")
	}
	see("another lease is released", true, false)
	k.Release("k", now0, 1)
	see("the lease is released", false, true)

	none, err := New(100).Bind("l", []Rule{{"r", []meter.Limit{leases(0)}}})
	if err != nil {
		t.Fatal(err)
	}
	b = none
	p = b.open()
	p.Insert(nil, now0)
	if !b.Slots(0).Take("k", now0, 1, &r) || r.Allowed {
		t.Errorf("without any slots: %+v", r)
	}
	see("a quota of 0", false, false)

	if bind(t, New(100), leases(1), perHour(1)).Slots(0) != nil || bind(t, New(100), perHour(1)).Slots(0) != nil {
		t.Error("a rule has another limit, and has Slots")
	}
	next, err := b.Rebind([]Rule{{"r", []meter.Limit{leases(2)}}})
	if err != nil {
		t.Fatal(err)
	}
	if next.Slots(0).Take("k", now0, 1, &r) {
		t.Error("a new layout was taken for that of the table")
	}
}
