package synced

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// The answer to a push of an entry that was evicted changes nothing: neither the
// entry that the key has now, nor what is to be exchanged.
func TestTheAnswerOfAnEvictedEntry(t *testing.T) {
	s := &Store{table: newTable(shardCount, func(int64) {})}
	id := ident{a: 1}
	old, now := counted(0, 5), counted(0, 2)
	old.current.added.freeze()
	sh := &s.table.shards[0]
	sh.entries.add(id, now)
	for _, total := range []int64{5, 3} { // as it should be, and too low
		s.answered(&item{id: id, entry: old}, 5, total, 0)
		if now.current.count() != 2 || now.current.added.sent != 0 {
			t.Errorf("%+v, want 2 hits that were not sent", now.current.added)
		}
		if len(s.exchange.low) != 0 || len(sh.dirty) != 0 || old.mark != 0 {
			t.Errorf("answer %d: the evicted entry is to be exchanged", total)
		}
	}
}

// An answer to hits that were pushed once more, because the backend had lost them,
// is not taken for another loss; nor is one of a window that may have expired.
func TestAnswersThatSayNothingOfALoss(t *testing.T) {
	for name, c := range map[string]struct {
		heal, now int64
		low       bool
	}{
		"a usual push":                 {0, hour, true},
		"hits pushed once more":        {4, hour, false},
		"before the window has ended":  {0, 2*hour - 1, true},
		"a window that may have ended": {0, 2 * hour, false},
	} {
		s := &Store{table: newTable(shardCount, func(int64) {})}
		id, e := ident{a: 1}, counted(20, 0)
		s.table.shards[0].entries.add(id, e)
		s.answered(&item{id: id, entry: e, heal: c.heal}, c.heal, 7, c.now)
		if low := len(s.exchange.low) > 0; low != c.low || (e.mark != 0) != c.low {
			t.Errorf("%s: low %v, to be exchanged %v", name, low, e.mark != 0)
		}
		if e.current.count() != 20 {
			t.Errorf("%s: the count is %d", name, e.current.count())
		}
	}
}

// A process learns of the refunds of others from the first answer that has some,
// and keeps no counter of refunds before.
func TestAnswersWithRefundsOfOthers(t *testing.T) {
	s := &Store{table: newTable(shardCount, func(int64) {})}
	id, e := ident{a: 1}, counted(20, 0)
	s.table.shards[0].entries.add(id, e)
	it := &item{id: id, entry: e, back: true}
	if s.answered(it, 0, 0, 0); e.current.back != nil || e.current.count() != 20 {
		t.Errorf("no refunds: %+v", e.current)
	}
	if s.answered(it, 0, -3, 0); e.current.count() != 17 {
		t.Errorf("3 refunds: the count is %d, want 17", e.current.count())
	}
	if s.answered(it, 0, -5, 0); e.current.count() != 15 || e.mark != 0 {
		t.Errorf("5 refunds: the count is %d, want 15", e.current.count())
	}
}

// Of refunds beyond the hits, a process turns back only those that its push has
// added: not those that it pushed once more, because the backend had lost them.
func TestRefundsThatArePushedOnceMoreAreNotTurnedBack(t *testing.T) {
	for _, c := range []struct{ added, heal, want int64 }{{0, 3, 0}, {1, 3, 1}, {2, 0, 2}, {5, 3, 2}} {
		s := &Store{table: newTable(shardCount, func(int64) {})}
		id, e := ident{a: 1}, counted(5, 0)
		back := e.current.given()
		back.total, back.own, back.sent = 7-c.added, 7-c.added, c.added
		s.table.shards[0].entries.add(id, e)
		s.answered(&item{id: id, entry: e, back: true, heal: c.heal}, -(c.added + c.heal), -7, 0)
		if got := e.current.added.diff; got != c.want || back.total != 7 {
			t.Errorf("%d refunds, and %d once more: %d hits are added of the %d refunds that are too many, want %d", c.added, c.heal, got, back.total-5, c.want)
		}
	}
}

// An entry moves on by the windows that have passed, keeps the one before, and
// ignores a clock that was set back.
func TestAnEntryRolls(t *testing.T) {
	for windows, want := range map[int64][2]int64{-3: {5, 3}, -1: {5, 3}, 0: {5, 3}, 1: {0, 5}, 2: {0, 0}, 7: {0, 0}} {
		e := counted(5, 0)
		e.start = 100 * hour
		e.previous.added.total = 3
		e.roll((100 + windows) * hour)
		if got := [2]int64{e.current.count(), e.previous.count()}; got != want || e.start != (100+max(0, windows))*hour {
			t.Errorf("%d windows on: counts %v from %d, want %v", windows, got, e.start/hour-100, want)
		}
		if e.at(e.start) != &e.current || e.at(e.start-hour) != &e.previous || e.at(e.start+hour) != nil || e.at(e.start-2*hour) != nil {
			t.Errorf("%d windows on: its windows are others", windows)
		}
	}
}

// An entry is over when neither of its windows counts, and a window later if it
// has hits that were not pushed.
func TestWhenAnEntryIsOver(t *testing.T) {
	pushed, unsent := counted(5, 0), counted(0, 5)
	given := counted(5, 0)
	given.current.given().diff = 2
	for _, c := range []struct {
		e    *entry
		ends int64
	}{{pushed, 2 * hour}, {unsent, 3 * hour}, {given, 3 * hour}} {
		if c.e.expired(c.ends-1) || !c.e.expired(c.ends) {
			t.Errorf("%+v: over before or after %d windows", c.e.current, c.ends/hour)
		}
	}
}

// What was not pushed of both windows of an evicted entry is counted as lost.
func TestLostHitsOfBothWindows(t *testing.T) {
	var lost int64
	e := counted(0, 5)
	e.previous.added.diff = 3
	tab, s := fill(t, 1, &lost, e)
	tab.insert(s, ident{a: 9}, counted(0, 100), 0, nil)
	if lost != 8 {
		t.Errorf("%d hits are lost, want 8", lost)
	}
}

// Each use of an entry has it take part in as many exchanges as the first one.
func TestEveryUseLengthensTheExchanges(t *testing.T) {
	s, e := &shard{}, counted(1, 0)
	s.entries.add(ident{a: 1}, e)
	s.use(e)
	f := s.entries.find(ident{a: 1})
	f.rounds = 1
	s.use(e)
	if f.rounds != markedFor || len(s.dirty) != 1 {
		t.Errorf("%d exchanges more, noted %d times; want %d and once", f.rounds, len(s.dirty), markedFor)
	}
}

// Keys of different limits are apart, by both hashes.
func TestLimitsAreApart(t *testing.T) {
	tab := newTable(64, func(int64) {})
	a, b := tab.ident(1, []byte("k")), tab.ident(2, []byte("k"))
	if a.a == b.a || a.b == b.b || a != tab.ident(1, []byte("k")) {
		t.Errorf("%v and %v", a, b)
	}
}

// A table has room for MaxKeys entries, spread over its shards.
func TestTheRoomOfATable(t *testing.T) {
	for maxKeys, want := range map[int]int{1: 1, 63: 1, 64: 1, 6400: 100} {
		if got := newTable(maxKeys, nil).most; got != want {
			t.Errorf("MaxKeys %d: %d entries in each of %d shards, want %d", maxKeys, got, shardCount, want)
		}
	}
}

// short returns too few totals.
type short struct{ Backend }

func (short) PushDiffs(_ context.Context, b Batch) ([]int64, error) {
	return make([]int64, len(b.Diffs)-1), nil
}

// A backend that returns too few totals is an error of the exchange and of a
// decision that asks the backend. The hits are kept.
func TestABackendThatReturnsTooFewTotals(t *testing.T) {
	ctx := t.Context()
	s := &Store{backend: short{}, config: Config{Interval: time.Hour, Timeout: time.Minute, BatchSize: 10, Log: slog.New(slog.DiscardHandler)}, now: func() int64 { return 0 }}
	s.table = newTable(shardCount, func(int64) {})
	e := counted(0, 5)
	s.table.shards[0].entries.add(ident{a: 1}, e)
	s.table.shards[0].use(e)
	if err := s.exchangeAll(ctx); err == nil || e.current.count() != 5 || s.stats.failed.Load() != 1 {
		t.Errorf("error %v, %d hits, %d failures", err, e.current.count(), s.stats.failed.Load())
	}
	through, err := New(short{}, Config{Namespace: "short"})
	if err != nil {
		t.Fatal(err)
	}
	defer through.Close(ctx) //nolint:errcheck // of no interest any more
	l, err := core.New(core.Config{Name: "api", Store: through, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{{Quota: 10, Window: time.Hour, Aligned: true}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := l.Take(ctx, 1, core.Hit{Rule: "r", Key: "k"}); err == nil {
		t.Errorf("no error, and %v", d)
	}
}

// even answers every push with what was pushed.
type even struct{ Backend }

func (even) PushDiffs(_ context.Context, b Batch) ([]int64, error) {
	totals := make([]int64, len(b.Diffs))
	for i := range totals {
		totals[i] = b.Diffs[i].Diff
	}
	return totals, nil
}

// Each exchange sweeps another shard, and what was fetched: nothing that is over
// stays for longer than as many exchanges as there are shards.
func TestExchangesSweepEveryShard(t *testing.T) {
	now := 100 * hour
	s := &Store{backend: even{}, config: Config{Interval: time.Hour, Timeout: time.Minute, BatchSize: 10, Log: slog.New(slog.DiscardHandler)}, now: func() int64 { return now }}
	s.table = newTable(100*shardCount, func(int64) {})
	s.fetcher.counts.all = map[counterID]int64{}
	for i := range s.table.shards {
		for j := range uint64(3) {
			e := counted(5, 0)
			if j == 0 {
				e.start = now
			}
			s.table.shards[i].entries.add(ident{a: j, b: uint64(i)}, e)
		}
	}
	s.fetcher.counts.add(counterID{"over", hour, 0}, 5, 10)
	s.fetcher.counts.add(counterID{"counts", hour, now}, 5, 10)
	for range shardCount {
		if err := s.exchangeAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.table.len(); n != shardCount {
		t.Errorf("%d entries are left, want the %d that count", n, shardCount)
	}
	if n := s.fetcher.counts.size.Load(); n != 1 {
		t.Errorf("%d fetched counters are left, want 1", n)
	}
}

// A chunk has no more differences than BatchSize, the two counters of a window are
// in one chunk, and nothing is added to a chunk that was pushed before.
func TestChunks(t *testing.T) {
	s := &Store{config: Config{Interval: time.Hour, BatchSize: 5}, now: func() int64 { return 0 }}
	s.table = newTable(100*shardCount, func(int64) {})
	s.exchange.pending = []chunk{{tried: true}}
	for i := range uint64(7) {
		e, sh := counted(0, 1), &s.table.shards[0]
		sh.entries.add(ident{a: i}, e)
		sh.use(e)
	}
	s.collect()
	pending := s.exchange.pending
	if len(pending[0].items) != 0 {
		t.Errorf("%d differences were added to a chunk that was pushed", len(pending[0].items))
	}
	total := 0
	for _, c := range pending[1:] {
		if len(c.items) > 5 || len(c.items) != len(c.Diffs) || len(c.items) == 0 {
			t.Errorf("a chunk of %d, at most 5", len(c.items))
		}
		for i, it := range c.items {
			if !it.back && (i+1 == len(c.items) || !c.items[i+1].back || c.items[i+1].entry != it.entry) {
				t.Error("the counters of a window are in two chunks")
			}
		}
		total += len(c.items)
	}
	if total != 7*4 {
		t.Errorf("%d differences, want those of two windows of 7 entries", total)
	}
}
