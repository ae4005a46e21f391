package memtable

import (
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

func TestADenialIsNotedForAsLongAsItLasts(t *testing.T) {
	for name, c := range map[string]struct {
		limit meter.Limit
		until int64
	}{
		"sliding log":     {logOf(2), now0 + hour},
		"bucketed window": {bucketed(2, hour, minute), now0 - now0%minute + hour + minute},
	} {
		b := bind(t, New(100, 0), perDay(9), c.limit)
		b.take(now0, 1)
		if p := b.open(); p.table.deniedUntil(p.slot, 1, now0) != 0 {
			t.Errorf("%s: a denial is noted of a key that has a hit left", name)
		}
		b.take(now0, 1)
		p := b.open()
		if got := p.table.deniedUntil(p.slot, 1, now0); got != c.until {
			t.Errorf("%s: charging notes a denial until %d, want %d", name, got, c.until)
		}
		p.table.forgetDenied(p.slot)
		p.table.weigh(p.slot, now0)
		if got := p.table.deniedUntil(p.slot, 1, now0); got != c.until {
			t.Errorf("%s: weighing notes a denial until %d, want %d", name, got, c.until)
		}
		if got := p.table.deniedUntil(p.slot, 1, c.until); got != 0 {
			t.Errorf("%s: a denial is noted until %d, which is over", name, got)
		}
	}
}

// What is noted of a denial holds for as long as the limit can deny. A bucketed
// window whose clock is set back by a whole window, to the beginning of a bucket,
// moves its hits: it denies for one bucket then, not for a window and a bucket.
func TestANoteOfADenialHoldsForAsLongAsTheLimitCanDeny(t *testing.T) {
	table := testTable(perDay(9), logOf(2), bucketed(2, hour, minute))
	slot := table.slot(table.insert(keyHash{place: 1}))
	for _, c := range []struct {
		limit int
		ahead int64
		holds bool
	}{
		{limit: 1, ahead: 0},
		{limit: 1, ahead: 1, holds: true},
		{limit: 1, ahead: hour, holds: true},
		{limit: 1, ahead: hour + 1},
		{limit: 2, ahead: 0},
		{limit: 2, ahead: 1, holds: true},
		{limit: 2, ahead: hour + minute - 1, holds: true},
		{limit: 2, ahead: hour + minute},
	} {
		table.noteDenied(slot, c.limit, now0+c.ahead)
		got := table.deniedUntil(slot, c.limit, now0)
		if want := now0 + c.ahead; c.holds && got != want || !c.holds && got != 0 {
			t.Errorf("limit %d: a note %d µs ahead is read as %d, holds: %t", c.limit, c.ahead, got, c.holds)
		}
	}
}

func TestAKeyOfAQuotaOfZeroIsDeniedForever(t *testing.T) {
	b := bind(t, New(100, 0), perHour(5), logOf(5))
	b.take(now0, 1)
	next, err := b.Rebind([]Rule{{"r", []meter.Limit{perHour(0), logOf(0)}}})
	if err != nil {
		t.Fatal(err)
	}
	p := next.open()
	if denied, weight := p.table.weigh(p.slot, now0); !denied || weight != meter.Forever {
		t.Errorf("denied %t, weight %d, want true and %d", denied, weight, meter.Forever)
	}
	if until := p.table.deniedUntil(p.slot, 1, now0); until != 0 {
		t.Errorf("a denial is noted until %d, although it has no end", until)
	}
}
