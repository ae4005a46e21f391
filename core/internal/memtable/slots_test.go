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
	b := bind(t, New(100, 0), leases(1))
	k := b.Slots(0)
	var r meter.Result
	if k.Release("k", 1, true) || k.Hold("k", 1) {
		t.Error("the rule has no table yet")
	}
	see := func(when string, holds, open bool) {
		t.Helper()
		if p := b.open(); p.table.holding(p.slot, now0) != holds || p.table.open.has(p.at) != open {
			t.Errorf("%s: holds a lease: %t, open: %t; want %t and %t", when, !holds, !open, holds, open)
		}
		b.ts.Check(t)
	}
	if !k.Take("k", now0, 1, &r) || !r.Allowed || r.Remaining != 0 {
		t.Errorf("the first one: %+v", r)
	}
	if k.Release("other", 1, true) || k.Hold("other", 1) {
		t.Error("the key is not in the table")
	}
	see("a lease", true, false)
	if !k.Take("k", now0+1, 2, &r) || r.Allowed || r.RetryAfter == 0 {
		t.Errorf("the second one: %+v", r)
	}
	if k.Release("k", 2, true) || k.Hold("k", 2) {
		t.Error("a lease that was not given was released")
	}
	see("another lease is released", true, false)
	if !k.Release("k", 1, false) || k.Release("k", 1, true) {
		t.Error("a lease is released once")
	}
	see("the lease is released", false, true)

	none, err := New(100, 0).Bind("l", []Rule{{"r", []meter.Limit{leases(0)}}})
	if err != nil {
		t.Fatal(err)
	}
	b = none
	if b.Slots(0).Take("k", now0, 1, &r) {
		t.Error("a key that may hold nothing was put into the table")
	}
	p := b.open()
	p.Insert(nil, now0)
	if !b.Slots(0).Take("k", now0, 1, &r) || r.Allowed {
		t.Errorf("without any slots: %+v", r)
	}
	see("a quota of 0", false, false)

	if bind(t, New(100, 0), leases(1), perHour(1)).Slots(0) != nil || bind(t, New(100, 0), perHour(1)).Slots(0) != nil {
		t.Error("a rule has another limit, and has Slots")
	}
	next, err := b.Rebind([]Rule{{"r", []meter.Limit{leases(2)}}})
	if err != nil {
		t.Fatal(err)
	}
	if !next.Slots(0).Take("k", now0, 1, &r) || !r.Allowed || b.Slots(0).Take("k", now0, 2, &r) {
		t.Error("the table has a new layout")
	}

	zero, err := next.Rebind([]Rule{{"r", []meter.Limit{leases(0)}}})
	if err != nil {
		t.Fatal(err)
	}
	b = zero
	b.open().Insert(nil, now0) // brings the table to the layout
	see("a lease of an earlier quota", true, false)
	if !next.Slots(0).Release("k", 1, true) {
		t.Error("a lease of an earlier quota is not released")
	}
	see("a quota of 0, after a lease of an earlier one", false, false)
}

// A key of Slots stays for a while after its last lease, unless its room is needed.
func TestIdleSlotsStayUntilTheyAreInTheWay(t *testing.T) {
	limit := meter.Limit{Quota: 1, Capacity: 1, Window: hour, Algorithm: meter.InFlight}
	for _, row := range []struct {
		name  string
		after int64
		keys  int
		stays bool
	}{
		{"at once", 0, 8, true},
		{"soon", keptIdle - 1, 8, true},
		{"late", keptIdle, 8, false},
		{"the clock was set back", -1, 8, false},
		{"the table is full", 1, 4, false},
	} {
		ts := New(row.keys, 0)
		k := bind(t, ts, limit).Slots(0)
		var r meter.Result
		for i, key := range []string{"k", "a", "b", "c"} {
			if !k.Take(key, now0, uint64(i+1), &r) || !r.Allowed {
				t.Fatalf("%s: %+v", row.name, r)
			}
		}
		if k.Release("k", 1, true); !ts.Held("l", "r", "k\x00") {
			t.Errorf("%s: the key is gone already", row.name)
		}
		for i := range max(row.keys-4, 1) { // so that the sweep gets to the key
			k.Take(string('0'+rune(i)), now0+row.after, uint64(9+i), &r)
		}
		if ts.Held("l", "r", "k\x00") != row.stays {
			t.Errorf("%s: the key stays: %t", row.name, !row.stays)
		}
		if n := ts.Evicted(); n != 0 {
			t.Errorf("%s: %d keys were evicted", row.name, n)
		}
	}
}

// What is held stays held, and is released once.
func TestAHeldLeaseOutlivesItsRelease(t *testing.T) {
	limit := meter.Limit{Quota: 1, Capacity: 1, Window: hour, Algorithm: meter.InFlight}
	b := bind(t, New(100, 0), limit)
	k := b.Slots(0)
	var r meter.Result
	if !k.Take("k", now0, 1, &r) || !k.Hold("k", 1) || !k.Hold("k", 1) {
		t.Fatal("the lease is not there")
	}
	if k.Release("k", 1, false) || !k.Take("k", now0, 2, &r) || r.Allowed {
		t.Error("the lease was not held")
	}
	next := b
	for _, limits := range [][]meter.Limit{{limit, perHour(5)}, {perHour(5), limit}} {
		var err error
		if next, err = next.Rebind([]Rule{{"r", limits}}); err != nil {
			t.Fatal(err)
		}
		next.open() // the table gets the new layout
		if !k.Hold("k", 1) || k.Release("k", 1, false) {
			t.Errorf("limits %v: the lease is not held any more", limits)
		}
	}
	if !k.Hold("k", 1) || k.Release("k", 1, false) || !k.Release("k", 1, true) || k.Release("k", 1, true) || k.Hold("k", 1) {
		t.Error("a lease of another layout is released once, when it is not held any more")
	}
	if _, err := next.Rebind([]Rule{{"r", []meter.Limit{perHour(5)}}}); err != nil {
		t.Fatal(err)
	}
	last, err := next.Rebind([]Rule{{"r", []meter.Limit{perHour(5)}}})
	if err != nil {
		t.Fatal(err)
	}
	if last.open(); k.Release("k", 1, true) || k.Hold("k", 1) {
		t.Error("the limit is gone")
	}
}
