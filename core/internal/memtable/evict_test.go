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
		table.layout.meters[0].Charge(new(meter.Result), table.state(slot, 0), now0, 1)
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
			var r meter.Result
			m.Charge(&r, w, now0, 1)
			r.Allowed = false
			m.Report(&r, w, now0, 1)
			want = max(want, r.RetryAfter.Microseconds())
		}
		denied, weight := table.weigh(slot, now0)
		if !denied || weight != want || weight < day {
			t.Errorf("%s: denied %v, weight %d, want %d", name, denied, weight, want)
		}
	}
}

// charged returns a table of keys to which these costs have been charged, of a quota per hour. The
// i-th key is in the i-th slot. The slots of denied keys are closed.
func charged(quota int64, costs ...int64) *table {
	table := testTable(perHour(quota))
	for i := range costs {
		table.insert(keyHash{place: uint64(i + 1)})
	}
	for i, cost := range costs {
		m, w := &table.layout.meters[0], table.state(table.slot(i), 0)
		r := meter.Result{Remaining: quota}
		if m.Charge(&r, w, now0, cost); r.Remaining == 0 {
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
			for i := range c.costs { // as after a quota was lowered
				if hand%2 == 1 && !table.open.has(i) {
					table.open.set(i)
					table.opens++
				}
			}
			if v := table.search(nil, now0); v.table != table || v.slot != c.want {
				t.Errorf("%s: from slot %d on, slot %d was found, want %d", name, hand, v.slot, c.want)
			}
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

func TestAKeyOfAQuotaOfZeroIsDeniedForever(t *testing.T) {
	b := bind(t, New(100, 0), perHour(5), logOf(5))
	b.take(now0, 1)
	next, err := b.Rebind([]Rule{{"r", []meter.Limit{perHour(0), logOf(0)}}})
	if err != nil {
		t.Fatal(err)
	}
	p := next.open()
	if denied, weight := p.table.weigh(p.slot, now0); !denied || weight != meter.Never.Microseconds() {
		t.Errorf("denied %t, weight %d, want true and %d", denied, weight, meter.Never.Microseconds())
	}
}

// A block ends at its time, and is then removed.
func TestABlockIsOverAtItsEnd(t *testing.T) {
	ts := New(100, 0)
	b := bind(t, ts, perMinute(5))
	p := b.open()
	p.Block(second, now0)
	for _, row := range []struct{ now, want int64 }{{now0, second}, {now0 + second - 1, 1}, {now0 + second, 0}, {now0 + 2*second, 0}} {
		if got := p.BlockedFor(row.now); got != row.want {
			t.Errorf("at %d: blocked for %d, want %d", row.now-now0, got, row.want)
		}
	}
	if n := ts.blocked.n.Load(); n != 0 || len(ts.blocked.until) != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

// The block of a key that nobody asks for again is removed too: while there is one, each take looks
// for its own.
func TestABlockThatNobodyAsksForIsRemoved(t *testing.T) {
	ts := New(100, 0)
	b := bind(t, ts, perMinute(5))
	gone := b.Place(0, []byte("gone\x00"))
	gone.Block(second, now0)
	p := b.open()
	for now := int64(now0); now < now0+minute; now += second {
		p.BlockedFor(now)
	}
	if n := ts.blocked.n.Load(); n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

// A table that has as many blocks as keys forgets the ones that are over, or the one that is over
// first.
func TestTheBlocksOfATableAreBounded(t *testing.T) {
	key := func(b *Binding, k string) *Place { p := b.Place(0, []byte(k+"\x00")); return &p }
	ts := New(3, 0)
	b := bind(t, ts, perMinute(5))
	for k, length := range map[string]int64{"a": minute, "b": second, "c": hour} {
		key(b, k).Block(length, now0)
	}
	for _, k := range []string{"a", "b", "c"} { // as many as there may be
		if key(b, k).BlockedFor(now0) == 0 {
			t.Errorf("%s is not blocked", k)
		}
	}
	key(b, "d").Block(day, now0)
	for k, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if got := key(b, k).BlockedFor(now0) != 0; got != want {
			t.Errorf("%s is blocked: %t, want %t", k, got, want)
		}
	}
	key(b, "e").Block(hour, now0+minute) // a is over, so that there is room
	for k, want := range map[string]bool{"c": true, "d": true, "e": true} {
		if got := key(b, k).BlockedFor(now0+minute) != 0; got != want {
			t.Errorf("after a minute, %s is blocked: %t, want %t", k, got, want)
		}
	}
}

// A reset of all keys of a limiter ends its blocks, and those of no other limiter.
func TestAResetOfAllEndsTheBlocksOfTheLimiter(t *testing.T) {
	ts := New(100, 0)
	b := bind(t, ts, perMinute(5))
	other, err := ts.Bind("other", []Rule{{"r", []meter.Limit{perMinute(5)}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time, the limiter has no block
		if err := b.ResetAll(); err != nil {
			t.Fatal(err)
		}
		b.open().Block(second, now0)
		other.open().Block(second, now0)
		if err := b.ResetAll(); err != nil {
			t.Fatal(err)
		}
		if until, n := b.open().BlockedFor(now0), ts.blocked.n.Load(); until != 0 || n != 1 {
			t.Errorf("blocked until %d; %d blocks are left, want that of the other limiter", until, n)
		}
		if other.open().BlockedFor(now0) == 0 {
			t.Error("the key of another limiter is not blocked any more")
		}
	}
}

// A rule that has gone keeps no blocks.
func TestARuleThatHasGoneIsNotBlocked(t *testing.T) {
	ts := New(100, 0)
	b := bind(t, ts, perMinute(5))
	p := b.open()
	p.Block(second, now0)
	if _, err := b.Rebind(nil); err != nil || len(ts.blocked.until) != 0 {
		t.Errorf("%v, %d blocks are left", err, len(ts.blocked.until))
	}
	if p.Block(second, now0); len(ts.blocked.until) != 0 {
		t.Error("a rule that has gone is blocked")
	}
}

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
		p.Report(0, meter.Own, now0, 1, true, &r)
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
