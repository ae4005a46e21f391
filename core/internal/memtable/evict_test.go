package memtable

import (
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// oneKey returns tables with one key, which has used up two hits per hour.
func oneKey(t *testing.T) (ts *Tables, b *Binding, results []meter.Result) {
	t.Helper()
	ts = New(100)
	b = bind(t, ts, perHour(2))
	results, _, allowed := b.take(now0, 2)
	if !allowed {
		t.Fatal(results)
	}
	if p := b.open(); p.slot == nil || p.table.open.has(p.at) {
		t.Fatal("the key is not held, or its slot is open although it is denied")
	}
	return ts, b, results
}

// Eviction takes keys whose slot is open first. A key that is not denied any
// more must not be spared.
func TestARefundOpensTheSlotOfADeniedKey(t *testing.T) {
	_, b, results := oneKey(t)
	b.refund(now0, now0, 2, results)
	if p := b.open(); !p.table.open.has(p.at) || p.table.opens != 1 {
		t.Error("the slot is still closed")
	}
}

func TestTheSweepOpensTheSlotOfAKeyThatHasRecovered(t *testing.T) {
	ts, b, _ := oneKey(t)
	p := b.open()
	sweep := func(at int64) bool {
		s := &ts.shards[p.shard]
		for range p.table.slots {
			s.sweep(ts, p.table, at)
		}
		return p.table.open.has(p.at)
	}
	if sweep(now0) {
		t.Error("the slot of a key that is denied is open")
	}
	// The sliding window still has a part of the hits, but not all of them.
	if !sweep(now0+2*hour-minute) || p.table.opens != 1 || ts.Len() != 1 {
		t.Errorf("%d keys are held, of which %d have an open slot; want 1 and 1", ts.Len(), p.table.opens)
	}
}

// Searches go round the table: they do not weigh the same keys again and again.
func TestASearchBeginsAtTheEndOfTheLastOne(t *testing.T) {
	table := testTable(perHour(5))
	for i := range uint64(100) {
		slot := table.slot(table.insert(hash128{(i + 1) << 56, i}))
		table.layout.meters[0].Charge(table.state(slot, 0), now0, 1)
	}
	last := -1
	for i := range 100 / table.layout.sample {
		v := table.search(nil, now0)
		if v.table == nil || v.slot <= last {
			t.Fatalf("search %d found slot %d after slot %d, want one further on", i+1, v.slot, last)
		}
		last = v.slot
	}
}

func TestADeniedKeyWeighsItsLongestWait(t *testing.T) {
	for name, limits := range map[string][]meter.Limit{
		"the longest first": {perDay(1), perMinute(1)},
		"the longest last":  {perMinute(1), perDay(1)},
	} {
		table := testTable(limits...)
		slot := table.slot(table.insert(hash128{1 << 50, 1}))
		var want int64
		for i := range table.layout.meters {
			m, w := &table.layout.meters[i], table.state(slot, i)
			m.Charge(w, now0, 1)
			want = max(want, m.Wait(w, now0, 1))
		}
		denied, weight := table.weigh(slot, now0)
		if !denied || weight != want || weight < day {
			t.Errorf("%s: denied %v, weight %d, want %d", name, denied, weight, want)
		}
	}
}
