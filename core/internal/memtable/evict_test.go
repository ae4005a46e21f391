package memtable

import (
	"slices"
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// oneKey returns tables with one key, which has used up two hits per hour.
func oneKey(t *testing.T) (ts *Tables, b *Binding, results []meter.Result) {
	t.Helper()
	ts = New(100, 0)
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

// Searches go round the table: they do not weigh the same keys again and again.
func TestASearchBeginsAtTheEndOfTheLastOne(t *testing.T) {
	table := testTable(perHour(5))
	for i := range uint64(100) {
		slot := table.slot(table.insert(keyHash{place: (i + 1) << 56}))
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
		slot := table.slot(table.insert(keyHash{place: 1 << 50}))
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

// charged returns a table of keys to which these costs have been charged, of a
// quota per hour. The i-th key is in the i-th slot. The slots of denied keys are
// closed.
func charged(quota int64, costs ...int64) *table {
	table := testTable(perHour(quota))
	for i := range costs {
		table.insert(keyHash{place: uint64(i + 1)})
	}
	for i, cost := range costs {
		m, w := &table.layout.meters[0], table.state(table.slot(i), 0)
		if m.Charge(w, now0, cost); m.Remaining(w, now0) == 0 {
			table.deny(i)
		}
	}
	return table
}

func TestASearchWeighsAsManyKeysAsTheLayoutSays(t *testing.T) {
	for name, cost := range map[string]int64{"not denied": 1, "denied": 5} {
		table := charged(5, slices.Repeat([]int64{cost}, 100)...)
		for i := range 3 {
			// The hand is behind the last key that was weighed.
			v := table.search(nil, now0)
			if want := (i + 1) * table.layout.sample; v.denied != (cost == 5) || table.hand != want {
				t.Errorf("%s, search %d: denied %t, slots up to %d were weighed, want %d", name, i+1, v.denied, table.hand, want)
			}
		}
	}
}

// After a quota was lowered, slots are open whose keys are denied.
func TestASearchClosesABoundedNumberOfSlots(t *testing.T) {
	table := charged(5, slices.Repeat([]int64{5}, 100)...)
	for i := range 100 {
		table.open.set(i)
		table.opens++
	}
	v := table.search(nil, now0)
	if closed := 100 - table.opens; !v.denied || closed != 4*table.layout.sample {
		t.Errorf("denied %t, %d slots were closed, want %d", v.denied, closed, 4*table.layout.sample)
	}
}

func TestASearchFindsTheKeyThatHasUsedLeast(t *testing.T) {
	for name, c := range map[string]struct {
		quota int64
		costs []int64
		want  int
	}{
		"behind denied ones":                   {5, []int64{4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 1, 5, 2}, 12},
		"in the first slot":                    {5, []int64{1, 5, 4, 3, 4, 3, 2}, 0},
		"in the last slot":                     {5, []int64{2, 5, 4, 3, 4, 3, 1}, 6},
		"expired, before next to nothing used": {1 << 30, []int64{1, 1, 1, 0, 1, 1}, 3},
	} {
		table := charged(c.quota, c.costs...)
		for hand := range c.costs {
			table.hand = hand
			if v := table.search(nil, now0); v.table != table || v.slot != c.want {
				t.Errorf("%s: from slot %d on, slot %d was found, want %d", name, hand, v.slot, c.want)
			}
		}
	}
}

// The keys behind it have not been weighed for longer.
func TestOfKeysThatWeighTheSameTheFirstGoes(t *testing.T) {
	for hand, want := range []int{1, 1, 4, 4, 4, 1} {
		table := charged(5, 3, 2, 4, 3, 2, 3)
		table.hand = hand
		if v := table.search(nil, now0); v.slot != want {
			t.Errorf("from slot %d on, slot %d was found, want %d", hand, v.slot, want)
		}
	}
}

func TestTheLargestRuleAboveItsShareGivesAKeyUp(t *testing.T) {
	type held struct {
		keys  int64 // of the rule
		opens int   // slots of its table in the shard
	}
	const share, none = 10, -1 // the first table is nil
	for name, c := range map[string]struct {
		rules       []held
		open, other int // the first one with an open slot, the first of all
	}{
		"no rule is above its share":           {[]held{{share, 1}, {share - 1, 1}}, none, none},
		"one key above":                        {[]held{{share, 1}, {share + 1, 1}}, 1, 1},
		"the largest":                          {[]held{{20, 1}, {30, 1}, {25, 1}}, 1, 1},
		"the largest has denied keys only":     {[]held{{20, 1}, {30, 0}, {19, 2}}, 0, 1},
		"all have denied keys only":            {[]held{{20, 0}, {30, 0}}, none, 1},
		"the largest has an open slot further": {[]held{{30, 0}, {20, 0}, {15, 1}}, 2, 0},
	} {
		s := &shard{tables: []*table{nil}}
		for _, h := range c.rules {
			r := new(rule)
			r.held.Store(h.keys)
			s.tables = append(s.tables, &table{layout: &layout{rule: r}, used: 3, opens: h.opens})
		}
		got := s.aboveShare(share)
		for i, want := range []int{c.open, c.other} {
			if got[i] != s.tables[want+1] {
				t.Errorf("%s: table %d is not that of rule %d", name, i, want)
			}
		}
	}
}
