package memtable

import (
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// takeKnown takes a hit of the key k, which is "k" and a zero byte, the short way.
func (b *Binding) takeKnown() (r meter.Result, done bool) {
	k := b.Known(0)
	if k == nil {
		return r, false
	}
	c, _, allowed, done := k.Take(k.Meter(), "k", now0, 1, Charge|Count)
	if done {
		r.Allowed = allowed
		r.Remaining, r.ResetAfter, r.MoreAfter, r.RetryAfter = k.Meter().Tell(c, now0, 1, allowed)
	}
	return r, done
}

func TestTheShortWayDecidesOnAKnownKeyOfOneLimit(t *testing.T) {
	b := bind(t, New(100, 0), perHour(3))
	if _, done := b.takeKnown(); done {
		t.Error("the rule has no table yet")
	}
	if b.open().Single() {
		t.Error("Single is true of a key that is not in the table")
	}
	if _, done := b.takeKnown(); done {
		t.Error("the key is not in the table yet")
	}
	b.take(now0, 1)
	if !b.open().Single() {
		t.Error("Single is false of a key that is in the table")
	}
	// The slot of a key that is denied is closed: see search.
	for left := int64(1); left >= 0; left-- {
		r, done := b.takeKnown()
		p := b.open()
		if open := p.table.open.has(p.at); !done || !r.Allowed || r.Remaining != left || open != (left > 0) {
			t.Errorf("done %t, %+v, the slot is open: %t; want %d hits left", done, r, open, left)
		}
	}
	if r, done := b.takeKnown(); !done || r.Allowed {
		t.Errorf("done %t, %+v, want a denial", done, r)
	}
	// TakeSingle closes it too.
	b = bind(t, New(100, 0), perHour(3))
	b.take(now0, 1)
	for left := int64(1); left >= 0; left-- {
		var r meter.Result
		p := b.open()
		p.TakeSingle(meter.Own, now0, 1, false, &r)
		if open := p.table.open.has(p.at); r.Remaining != left || open != (left > 0) {
			t.Errorf("%d hits left, the slot is open: %t; want %d", r.Remaining, open, left)
		}
	}
}

func TestTheShortWayIsForOneLimitThatDoesNotGrow(t *testing.T) {
	for name, limits := range map[string][]meter.Limit{
		"two limits":    {perHour(3), perDay(5)},
		"sliding log":   {logOf(3)},
		"two of a kind": {bucketed(3, hour, minute), bucketed(3, day, minute)},
	} {
		b := bind(t, New(100, 0), limits...)
		b.take(now0, 1)
		if _, done := b.takeKnown(); done || b.open().Single() {
			t.Errorf("%s: the short way was taken", name)
		}
	}
}

// During a Rebind, the layout of a place and that of its table may differ.
func TestTheShortWayNeedsTheTablesOwnLayout(t *testing.T) {
	old := bind(t, New(100, 0), perHour(3))
	old.take(now0, 1)
	next, err := old.Rebind([]Rule{{"r", []meter.Limit{perHour(9)}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, done := next.takeKnown(); done {
		t.Error("a new layout was taken for that of the table")
	}
	if !next.open().Single() {
		t.Error("Single is false once the table has the new layout")
	}
	if _, done := old.takeKnown(); done || old.open().Single() {
		t.Error("an old layout was taken for that of the table")
	}
	if r, done := next.takeKnown(); !done || r.Remaining != 7 {
		t.Errorf("done %t, %+v, want 7 hits left", done, r)
	}
}
