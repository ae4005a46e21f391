package memtable

import (
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// sweepAll sweeps as often as it takes to go through a shard, for a table that is
// about to get a key.
func (s *shard) sweepAll(ts *Tables, own *table, now int64) {
	for _, t := range s.tables {
		for range t.slots + 1 {
			s.sweep(ts, own, now)
		}
	}
}

func TestTheSweepOpensTheSlotOfAKeyThatHasRecovered(t *testing.T) {
	ts, b, _ := oneKey(t)
	p := b.open()
	ts.shards[0].sweepAll(ts, p.table, now0)
	if p.table.open.has(p.at) {
		t.Error("the slot of a key that is denied is open")
	}
	// The sliding window still has a part of the hits, but not all of them.
	ts.shards[0].sweepAll(ts, p.table, now0+2*hour-minute)
	if !p.table.open.has(p.at) || p.table.opens != 1 || ts.Len() != 1 {
		t.Errorf("%d keys are held, of which %d have an open slot; want 1 and 1", ts.Len(), p.table.opens)
	}
}

func TestTheSweepRemovesExpiredKeys(t *testing.T) {
	ts, b, _ := oneKey(t)
	p := b.open()
	for _, c := range []struct {
		at   int64
		want int
	}{{now0 + 2*hour - 1, 1}, {now0 + 2*hour, 0}} {
		ts.shards[0].sweepAll(ts, p.table, c.at)
		if ts.Len() != c.want || ts.Evicted() != 0 {
			t.Errorf("after %v minutes %d keys are held, %d were evicted; want %d and 0", (c.at-now0)/minute, ts.Len(), ts.Evicted(), c.want)
		}
	}
}

// A slot that is opened again is weighed first. A sweep weighs as many keys as a
// search for a key to evict.
func TestTheSweepWeighsABoundedNumberOfKeys(t *testing.T) {
	ts := New(100, 0)
	b := bind(t, ts, bucketed(9, day, minute))
	s := &ts.shards[0]
	var own *table
	for key := range byte(minHomes) { // most of them are in the slots of one sweep
		p := b.Place(0, []byte{key})
		p.open()
		p.Insert(nil, now0)
		var r meter.Result
		p.Charge(0, meter.Own, now0, 1, &r)
		own = p.table
	}
	for i := range own.slots {
		own.deny(i)
	}
	s.turn, s.cursor = 0, 0
	s.sweep(ts, own, now0)
	if sample := own.layout.sample; sample != 1 || own.opens != sample {
		t.Errorf("%d slots were opened, want 1, as %d keys are weighed to evict one", own.opens, sample)
	}
}

func TestTheSweepGivesBackTheSlotsOfOtherRules(t *testing.T) {
	ts := New(100, 0)
	limits := []meter.Limit{perHour(2)}
	b, err := ts.Bind("l", []Rule{{"own", limits}, {"other", limits}})
	if err != nil {
		t.Fatal(err)
	}
	var tables []*table
	for i := range 2 {
		p := b.Place(i, []byte("k"))
		p.open()
		p.Insert(nil, now0)
		tables = append(tables, p.table)
	}
	ts.shards[0].sweepAll(ts, tables[0], now0+3*hour)
	if ts.Len() != 0 || tables[0].homes != minHomes || tables[1].homes != 0 || tables[1].words != nil {
		t.Errorf("%d keys are held; the rule that is about to get one has %d homes, the other %d; want 0, %d and 0",
			ts.Len(), tables[0].homes, tables[1].homes, minHomes)
	}
}
