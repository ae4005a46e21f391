package synced

import (
	"slices"
	"testing"
	"time"
)

// idle returns a store that exchanges only what a test has it do, at a time.
func idle(now int64) *Store {
	s := &Store{config: Config{Interval: time.Second, BatchSize: 100}, now: func() int64 { return now }}
	s.table = newTable(100*shardCount, func(int64) {})
	return s
}

// put puts entries into the table, and marks them as used.
func put(s *Store, entries ...*entry) {
	for i, e := range entries {
		id := ident{a: uint64(i)}
		sh := &s.table.shards[id.shard()]
		sh.entries.add(id, e)
		sh.use(e)
	}
}

// frozen returns the differences that collect has made, and takes them out.
func frozen(s *Store) (diffs []int64) {
	for _, c := range s.exchange.pending {
		for _, d := range c.Diffs {
			diffs = append(diffs, d.Diff)
		}
	}
	s.exchange.pending = nil
	return diffs
}

// Close pushes the largest differences first, hits and refunds alike.
func TestTheLargestDifferencesComeFirst(t *testing.T) {
	s := idle(0)
	var entries []*entry
	for _, n := range []int64{3, -5, 1, -2, -6, 4} {
		e := counted(10, max(0, n))
		if n < 0 {
			e.current.given().diff = -n
		}
		entries = append(entries, e)
	}
	put(s, entries...)
	var got []int64
	for _, w := range s.gather() {
		got = append(got, w.diff.Diff)
	}
	if want := []int64{-6, -5, 4, 3, -2, 1}; !slices.Equal(got, want) {
		t.Errorf("the differences %v, want %v", got, want)
	}
}

// Hits of a window are pushed until two lengths after its end, by an exchange and
// by Close.
func TestUntilWhenTheHitsOfAWindowArePushed(t *testing.T) {
	for _, c := range []struct {
		now                int64
		current, previous  bool // are pushed by Close
		exchanged, dropped int  // counters, and hits that are left
	}{
		{0, true, true, 4, 0},
		{2*hour - 1, true, true, 4, 0},
		{2 * hour, true, false, 4, 0},
		{3*hour - 1, true, false, 4, 0},
		{3 * hour, false, false, 0, 7},
	} {
		used := func() *entry {
			e := counted(0, 3)
			e.previous.added.diff = 4
			return e
		}
		s := idle(c.now)
		put(s, used())
		var want, got []int64
		if c.previous {
			want = append(want, 4)
		}
		if c.current {
			want = append(want, 3)
		}
		for _, w := range s.gather() {
			got = append(got, w.diff.Diff)
		}
		if !slices.Equal(got, want) {
			t.Errorf("at %d: Close pushes %v, want %v", c.now, got, want)
		}
		s, e := idle(c.now), used()
		put(s, e)
		s.collect()
		if n := len(frozen(s)); n != c.exchanged || e.unsent() != int64(c.dropped) {
			t.Errorf("at %d: an exchange pushes %d counters and leaves %d hits, want %d and %d", c.now, n, e.unsent(), c.exchanged, c.dropped)
		}
	}
}

// An exchange asks for the window before too if this process has something to
// push to it, has never asked, or if others may still push to it, which is for
// four Intervals.
func TestWhenTheWindowBeforeIsExchanged(t *testing.T) {
	const fourIntervals = 4_000_000
	for name, c := range map[string]struct {
		now    int64
		change func(e *entry)
		want   int
	}{
		"the window has begun":                 {0, func(*entry) {}, 4},
		"four intervals after that":            {fourIntervals, func(*entry) {}, 4},
		"later":                                {fourIntervals + 1, func(*entry) {}, 2},
		"later, hits of the window before":     {fourIntervals + 1, func(e *entry) { e.previous.added.diff = 1 }, 4},
		"later, refunds of the window before":  {fourIntervals + 1, func(e *entry) { e.previous.given().diff = 1 }, 4},
		"later, an entry that was never asked": {fourIntervals + 1, func(e *entry) { e.fresh = true }, 4},
	} {
		s, e := idle(c.now), counted(5, 1)
		c.change(e)
		put(s, e)
		for round, want := range []int{c.want, 2} {
			if round > 0 && c.now <= fourIntervals {
				break
			}
			s.collect()
			if n := len(frozen(s)); n != want {
				t.Errorf("%s: exchange %d asks for %d counters, want %d", name, round, n, want)
			}
		}
	}
}

// An entry takes part in three exchanges after its last use.
func TestAnEntryDropsOutOfTheExchanges(t *testing.T) {
	s, e := idle(hour-1), counted(5, 1)
	put(s, e)
	for i, want := range []int{2, 2, 2, 0, 0} {
		s.collect()
		if n := len(frozen(s)); n != want {
			t.Errorf("exchange %d asks for %d counters, want %d", i+1, n, want)
		}
	}
	if e.mark != 0 || len(s.table.shards[0].dirty) != 0 {
		t.Error("the entry is still marked")
	}
}

// A counter that is low is pushed once more only if there is something to push:
// this process's part of the lost hits, or hits that were refunded twice.
func TestWhatIsPushedOfALowCounter(t *testing.T) {
	for name, c := range map[string]struct {
		heal, diff int64
		back       bool
		want       []int64
	}{
		"none of the hits is this process's": {0, 0, false, nil},
		"lost hits":                          {3, 0, false, []int64{3}},
		"lost refunds":                       {3, 0, true, []int64{-3}},
		"hits refunded twice":                {0, 2, false, []int64{2}},
		"both":                               {3, 2, false, []int64{5}},
	} {
		s, e := idle(0), counted(20, 0)
		put(s, e)
		low := &e.current.added
		if c.back {
			low = e.current.given()
		}
		low.diff, low.loss = c.diff, &loss{missing: 10, heal: c.heal}
		it := item{entry: e, back: c.back}
		s.collectLow([]item{it})
		var heals int64
		for _, p := range s.exchange.pending {
			for _, it := range p.items {
				heals += it.heal
			}
		}
		if got := frozen(s); !slices.Equal(got, c.want) || heals != c.heal || low.loss.heal != 0 || low.diff != 0 {
			t.Errorf("%s: %v is pushed, of it %d once more, want %v and %d", name, got, heals, c.want, c.heal)
		}
		s.collectLow([]item{it}) // again: everything is on its way
		if got := frozen(s); len(got) != 0 {
			t.Errorf("%s: then %v is pushed too", name, got)
		}
	}
}

// Close puts back what was never pushed. Hits that the backend has had and lost are not among them.
func TestLostHitsAreNotPutBack(t *testing.T) {
	for _, back := range []bool{false, true} {
		s, e := idle(0), counted(20, 0)
		put(s, e)
		of, d := &e.current.added, Diff{Diff: 5}
		if back {
			of, d = e.current.given(), Diff{Diff: -5}
		}
		s.thaw(&item{entry: e, back: back, heal: 3}, d, nil)
		if of.diff != 2 {
			t.Errorf("refunds: %t: %d hits are put back, want 2 of 5 beside 3 that were lost", back, of.diff)
		}
	}
}

// What Close could not push is counted: hits, and counters of hits and refunds.
// Hits that were pushed before and are pushed once more are not.
func TestWhatIsLeftOfAFailedClose(t *testing.T) {
	for name, c := range map[string]struct {
		diff, heal int64
		back       bool
		counters   int
		hits       int64
	}{
		"nothing was added":              {0, 0, false, 0, 0},
		"hits":                           {5, 0, false, 1, 5},
		"refunds":                        {-5, 0, true, 1, 0},
		"lost hits":                      {5, 5, false, 0, 0},
		"lost refunds":                   {-5, 5, true, 0, 0},
		"hits, some of them lost":        {5, 3, false, 1, 2},
		"refunds, some of them lost":     {-5, 3, true, 1, 0},
		"refunds, most of them not lost": {-5, 1, true, 1, 0},
	} {
		s := idle(0)
		chunks := chunk{Batch: Batch{Diffs: []Diff{{Diff: c.diff}}}, items: []item{{back: c.back, heal: c.heal}}}
		s.exchange.pending = []chunk{chunks, chunks}
		if counters, hits := s.left(); counters != 2*c.counters || hits != 2*c.hits {
			t.Errorf("%s, twice: %d counters and %d hits, want %d and %d", name, counters, hits, 2*c.counters, 2*c.hits)
		}
	}
}

// While its shard is locked, an exchange collects no more entries than it is told,
// nor than there are: others may have been evicted.
func TestHowManyAreCollectedAtOnce(t *testing.T) {
	s := idle(0)
	put(s, counted(0, 1), counted(0, 1), counted(0, 1))
	for _, most := range []int{1, 9} {
		want := min(most, 3)
		at := s.collectSome(&s.table.shards[0], 0, most, 0)
		if n := len(frozen(s)) / 4; n != want || at != want {
			t.Errorf("%d are collected, the next one is at %d; want %d", n, at, want)
		}
	}
}
