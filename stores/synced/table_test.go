package synced

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
)

const hour = int64(time.Hour / time.Microsecond)

// fill inserts entries into one shard of a table that holds n there.
func fill(t *testing.T, n int, lost *int64, entries ...*entry) (*table, *shard) {
	t.Helper()
	tab := newTable(n*shardCount, func(hits int64) { *lost += hits })
	s := &tab.shards[0]
	for i, e := range entries {
		tab.insert(s, ident{a: uint64(i)}, e, 0, nil)
	}
	return tab, s
}

func counted(total, unsent int64) *entry {
	return &entry{names: "k-", window: hour, current: slot{added: tally{total: total, diff: unsent}}}
}

func holds(s *shard, e *entry) bool {
	for other := range s.entries.all() {
		if other == e {
			return true
		}
	}
	return false
}

// The counter with the most hits that were not pushed is the last to be evicted.
func TestEvictionKeepsWhatWasNotPushed(t *testing.T) {
	var lost int64
	precious, pushed := counted(0, 1000), counted(5000, 0)
	tab, s := fill(t, 3, &lost, precious, pushed, counted(0, 5))
	for i := range 500 {
		tab.insert(s, ident{a: uint64(100 + i)}, counted(0, int64(1+i%7)), 0, nil)
		if !holds(s, precious) {
			t.Fatalf("evicted after %d others", i)
		}
	}
	if holds(s, pushed) || lost == 0 || lost > 7*501 {
		t.Errorf("what the backend has is still here: %v; %d hits are lost", holds(s, pushed), lost)
	}
}

// Of counters that the backend has, the one that is nearest to being denied is
// evicted last, and an expired one first.
func TestEvictionKeepsHighCounts(t *testing.T) {
	var lost int64
	high, expired := counted(100, 0), counted(1000, 0)
	expired.start = -3 * hour
	tab, s := fill(t, 4, &lost, high, expired, counted(3, 0), counted(2, 0))
	tab.insert(s, ident{a: 99}, counted(1, 0), 0, nil)
	if holds(s, expired) || s.entries.used != 4 {
		t.Error("the expired one is still here")
	}
	for i := range 500 {
		tab.insert(s, ident{a: uint64(100 + i)}, counted(int64(i%50), 0), 0, nil)
		if !holds(s, high) {
			t.Fatalf("evicted after %d others", i)
		}
	}
	if lost != 0 {
		t.Errorf("%d hits are lost, all of which the backend has", lost)
	}
}

// A counter is near to being denied by the hits of its window and of the one before.
func TestEvictionCountsBothWindows(t *testing.T) {
	for range 20 { // the map begins anywhere
		var lost int64
		high, low := counted(5, 0), counted(6, 0)
		high.previous.added.total = 100
		tab, s := fill(t, 2, &lost, high, low)
		tab.insert(s, ident{a: 9}, counted(0, 9), 0, nil)
		if !holds(s, high) {
			t.Fatal("the counter that is nearer to being denied has been evicted")
		}
	}
}

// An operation never evicts an entry that it works on itself: all its charges
// arrive.
func TestAnOperationKeepsItsOwnEntries(t *testing.T) {
	s, err := New(nil, Config{Interval: -1, MaxKeys: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var rules []core.Rule
	var hits []core.Hit
	for i := range 60 {
		name := fmt.Sprint("r", i)
		rules = append(rules, core.Rule{Name: name, Limits: []core.Limit{{Quota: 10, Window: time.Hour, Aligned: true}, {Quota: 10, Window: 2 * time.Hour, Aligned: true}}})
		hits = append(hits, core.Hit{Rule: name, Key: "k"})
	}
	l, err := core.New(core.Config{Name: "api", Store: s, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Take(context.Background(), 4, hits...); err != nil {
		t.Fatal(err)
	}
	if lost := s.Stats().Lost; lost != 0 {
		t.Errorf("%d hits of the same operation are lost", lost)
	}
	if d, err := l.Take(context.Background(), 4, hits...); err != nil || d.Remaining != 2 {
		t.Errorf("%d left, %v, want 2", d.Remaining, err)
	}
}

// Reading keys evicts no counter.
func TestReadingEvictsNothing(t *testing.T) {
	s := &Store{config: Config{Interval: time.Second}, table: newTable(shardCount, func(int64) {})}
	b := &bound{Store: s, limiter: "api", rules: []boundRule{{name: "r"}}}
	m, err := windowsOf(core.Limit{Quota: 10, Window: time.Hour, Aligned: true})
	if err != nil {
		t.Fatal(err)
	}
	l := limit{number: 1, suffix: ":s", windows: m, quota: 10}
	sh := &s.table.shards[0]
	kept := counted(3, 0)
	sh.entries.add(ident{a: 1}, kept)
	item := &core.Item{Key: []byte("k")}
	k := &places{places: []place{{id: ident{a: 2}, limit: &l, item: item}}}
	b.join(k, 0, false)
	if !holds(sh, kept) || sh.entries.used != 1 || k.places[0].entry != nil {
		t.Error("a key that was only read has taken a counter's place")
	}
	b.join(k, 0, true)
	if holds(sh, kept) || k.places[0].entry == nil {
		t.Error("a key that is charged finds no place")
	}
}

// What was fetched is bounded, and dropped when its window means nothing.
func TestFetchedCountersAreBounded(t *testing.T) {
	f := fetched{all: map[counterID]int64{}}
	for i := range int64(100) {
		if got := f.add(counterID{fmt.Sprint(i), hour, i * hour}, 5, 60); got != (i < 60) {
			t.Fatalf("the %dth of 60: %v", i, got)
		}
	}
	if !f.add(counterID{"7", hour, 7 * hour}, 6, 60) {
		t.Error("a counter that is there already has no room")
	}
	f.sweep(31 * hour)
	if n := f.size.Load(); n != 30 || len(f.all) != 30 {
		t.Errorf("%d are left, want the 30 whose windows still count", n)
	}
	e := &entry{names: "40-", window: hour, start: 40 * hour}
	if !f.tell(e) || e.current.count() != 5 || f.tell(e) || f.size.Load() != 29 {
		t.Errorf("told %d; %d are left", e.current.count(), f.size.Load())
	}
	// A push that is under way may be in the count already.
	e = &entry{names: "41-", window: hour, start: 41 * hour, current: slot{added: tally{sent: 5}}}
	if f.tell(e) || e.current.count() != 5 {
		t.Errorf("5 on their way and 5 fetched are %d", e.current.count())
	}
}

// A sweep looks at a bounded number of entries, or of fetched counters: the rest
// wait for the next ones.
func TestASweepIsBounded(t *testing.T) {
	tab := newTable(1_000_000, func(int64) {})
	sh := &tab.shards[0]
	f := fetched{all: map[counterID]int64{}}
	for i := range int64(2*sweepAtOnce + 1) {
		sh.entries.add(ident{a: uint64(i)}, counted(1, 0))
		f.add(counterID{fmt.Sprint(i), hour, 0}, 1, 1_000_000)
	}
	for _, want := range []int{sweepAtOnce + 1, 1, 0, 0} {
		tab.sweep(sh, 10*hour)
		f.sweep(10 * hour)
		if n := sh.entries.used; n != want {
			t.Errorf("%d entries are left, want %d", n, want)
		}
		if n := f.size.Load(); int(n) != want || len(f.all) != want {
			t.Errorf("%d fetched counters are left, want %d", n, want)
		}
	}
}

// Of two counters whose hits the backend has, the one with the fewer hits in both
// windows is the cheaper one.
func TestWhichCounterIsCheaper(t *testing.T) {
	both, one := counted(5, 0), counted(8, 0)
	both.previous.added.total = 5
	if both.cheaper(one) || !one.cheaper(both) {
		t.Error("5 hits in each of two windows are cheaper than 8 in one")
	}
	unsent := counted(0, 1)
	if unsent.cheaper(both) || !both.cheaper(unsent) {
		t.Error("a hit that was not pushed is cheaper than 10 that were")
	}
}

// An eviction compares a bounded number of entries: in a large shard it misses
// the cheapest one mostly.
func TestAnEvictionIsBounded(t *testing.T) {
	const entries, tries = 1000, 50
	found := 0
	for range tries {
		tab := newTable(entries*shardCount, func(int64) {})
		s, cheapest := &tab.shards[0], counted(1, 0)
		s.entries.add(ident{a: 1 << 63}, cheapest) // in the middle
		for i := range uint64(entries - 1) {
			s.entries.add(ident{a: i}, counted(2, 0))
		}
		tab.evict(s, 0, nil)
		if s.entries.used != entries-1 {
			t.Fatalf("%d entries are left", s.entries.used)
		}
		if !holds(s, cheapest) {
			found++
		}
	}
	if found > tries/2 {
		t.Errorf("%d of %d evictions found the cheapest of %d entries", found, tries, entries)
	}
}

// A use by the short way has a key take part in as many exchanges as the first use.
func TestAUseByTheShortWayLengthensTheExchanges(t *testing.T) {
	s := idle(hour)
	m, err := windowsOf(core.Limit{Quota: 10, Window: time.Hour, Aligned: true})
	if err != nil {
		t.Fatal(err)
	}
	b := &bound{Store: s, limiter: "api", rules: []boundRule{{name: "r", limits: []limit{{number: 1, suffix: ":s", windows: m, quota: 10}}}}}
	id := s.table.ident(1, []byte("k"))
	for range 2 {
		if err := storetest.Do(t.Context(), b, core.OpTake, &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 1, Results: make([]core.Result, 1)}}}); err != nil {
			t.Fatal(err)
		}
		f := s.table.shards[id.shard()].entries.find(id)
		if f.rounds != markedFor {
			t.Errorf("%d exchanges more, want %d", f.rounds, markedFor)
		}
		f.rounds = 1
	}
}
