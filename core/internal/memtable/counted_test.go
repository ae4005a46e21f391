package memtable

import (
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// counts fails if the limiter's counted decisions are not these.
func (b *Binding) counts(tb testing.TB, when string, allowed, denied uint64) {
	tb.Helper()
	if a, d := b.Counted(); a != allowed || d != denied {
		tb.Errorf("%s: %d allowed and %d denied are counted, want %d and %d", when, a, d, allowed, denied)
	}
}

// What has been counted stays, whatever becomes of the tables.
func TestCountedDecisionsOutliveTheirTables(t *testing.T) {
	ts := New(10_000, 0)
	b := bind(t, ts, perHour(3))
	other, err := ts.Bind("other", []Rule{{"r", []meter.Limit{perHour(3)}}})
	if err != nil {
		t.Fatal(err)
	}
	charge := func(b *Binding, text string, mode Mode, times int) {
		p := b.Place(0, []byte(text+"\x00"))
		p.Open()
		p.Insert(nil, now0)
		for range times {
			k := b.Known(0)
			k.Take(k.Meter(), text, now0, 1, mode)
		}
	}
	for i := range 20 { // in several shards
		charge(b, fmt.Sprint(i), Charge|Count, 5)
	}
	b.counts(t, "five of each key", 60, 40)
	charge(b, "peeked", Count, 2)
	b.counts(t, "counted without a charge", 62, 40)
	charge(b, "not counted", Charge, 2)
	b.counts(t, "charged without being counted", 62, 40)
	charge(other, "k", Charge|Count, 4)
	b.counts(t, "another limiter's", 62, 40)
	other.counts(t, "its own", 3, 1)

	same, err := b.Rebind([]Rule{{"r", []meter.Limit{perHour(3)}}, {"s", []meter.Limit{perHour(3)}}})
	if err != nil {
		t.Fatal(err)
	}
	same.counts(t, "after a Rebind", 62, 40)
	charge(same, "0", Charge|Count, 1)
	same.counts(t, "and one more denied", 62, 41)
	changed, err := same.Rebind([]Rule{{"r", []meter.Limit{perDay(3)}}, {"s", []meter.Limit{perHour(3)}}})
	if err != nil {
		t.Fatal(err)
	}
	p := changed.Place(0, []byte("0\x00"))
	p.Open() // the table adopts a layout with other limits
	changed.counts(t, "with other limits", 62, 41)
	gone, err := changed.Rebind([]Rule{{"s", []meter.Limit{perHour(3)}}})
	if err != nil {
		t.Fatal(err)
	}
	gone.counts(t, "once the rule is gone", 62, 41)
	reused, err := ts.Bind("third", []Rule{{"t", []meter.Limit{perHour(3)}}})
	if err != nil {
		t.Fatal(err)
	}
	charge(reused, "k", Charge|Count, 1)
	changed.counts(t, "another rule has the id now", 62, 41)
	reused.counts(t, "of that rule", 1, 0)
	ts.Close()
	gone.counts(t, "after Close", 62, 41)
	other.counts(t, "another limiter's after Close", 3, 1)
}

func TestCountedIsOfAllShardsAndRules(t *testing.T) {
	b, err := New(100_000, 0).Bind("l", []Rule{{"a", []meter.Limit{perHour(9)}}, {"b", []meter.Limit{perHour(9)}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		for rule := range 2 {
			p := b.Place(rule, []byte(fmt.Sprint(i)+"\x00"))
			p.Open()
			p.Insert(nil, now0)
			k := b.Known(rule)
			k.Take(k.Meter(), fmt.Sprint(i), now0, 1, Charge|Count)
		}
	}
	b.counts(t, "300 keys of two rules", 600, 0)
}
