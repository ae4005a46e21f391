package synced

import "time"

// collectAtOnce is how many entries are collected while their shard is locked:
// decisions on its keys wait for that.
const collectAtOnce = 64

// collect freezes the differences of all entries that are marked, in chunks. It
// takes some of each shard in turn, so that whoever waits for a shard gets it.
func (s *Store) collect() {
	now := s.now()
	var at, left [shardCount]int // of each shard's marked entries
	for i := range s.table.shards {
		sh := &s.table.shards[i]
		sh.mu.Lock()
		left[i] = len(sh.dirty)
		sh.mu.Unlock()
	}
	for more := true; more; {
		more = false
		for i := range s.table.shards {
			if left[i] > 0 {
				at[i] = s.collectSome(&s.table.shards[i], at[i], min(left[i], collectAtOnce), now)
				left[i] -= collectAtOnce
				more = true
			}
		}
	}
}

// collectSome collects n of a shard's marked entries, from place at, and returns
// the place of the next one. Fewer may be left, as others have been evicted.
func (s *Store) collectSome(sh *shard, at, n int, now int64) (next int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for ; n > 0 && at < len(sh.dirty); n-- {
		f := sh.entries.find(sh.dirty[at].id)
		e := f.open()
		if f.rounds--; f.rounds > 0 {
			at++
		} else {
			sh.unmark(e)
		}
		if now >= e.start+3*e.window {
			continue // means nothing any more
		}
		s.freeze(e, e.start, now)
		// Hits of the window before that others push late still count.
		if e.previous.unsent() > 0 || e.fresh || now-e.start <= 4*s.config.Interval.Microseconds() {
			s.freeze(e, e.start-e.window, now)
		}
		e.fresh = false
		f.learn() // for the next decision on the key
	}
	return at
}

// collectLow freezes counters with lost hits in the backend, and counters with
// too many refunds.
func (s *Store) collectLow(low []item) {
	now := s.now()
	for _, it := range low {
		sh := &s.table.shards[it.id.shard()]
		sh.mu.Lock()
		if slot := it.entry.at(it.start); sh.entries.get(it.id) == it.entry && slot != nil {
			t := &slot.added
			if it.back {
				t = slot.given()
			}
			heal := int64(0)
			if t.loss != nil {
				heal, t.loss.heal = t.loss.heal, 0
			}
			if heal > 0 || t.diff > 0 {
				s.room(1, now)
				s.add(it, t, heal)
			}
		}
		sh.mu.Unlock()
	}
}

// freeze adds both counters of a window to the pending differences. The entry's
// shard is locked.
func (s *Store) freeze(e *entry, start, now int64) {
	slot := e.at(start)
	s.room(2, now)
	s.add(item{id: e.id, entry: e, start: start}, &slot.added, 0)
	s.room(1, now)
	back := slot.back
	if back == nil {
		back = new(tally) // others may have given hits back
	}
	s.add(item{id: e.id, entry: e, start: start, back: true}, back, 0)
}

// room begins a new chunk if the last one has no room for n differences more:
// the two counters of a window are to be read together.
func (s *Store) room(n int, now int64) {
	x := &s.exchange
	last := len(x.pending) - 1
	if last >= 0 && !x.pending[last].tried && len(x.pending[last].items)+min(n, s.config.BatchSize) <= s.config.BatchSize {
		return
	}
	x.sequence++
	x.pending = append(x.pending, chunk{Batch: Batch{Namespace: s.config.Namespace, Node: s.node, Sequence: x.sequence, At: micros(now)}})
}

// add adds the differences of a counter to the last chunk, and heal hits that
// the backend has lost.
func (s *Store) add(it item, t *tally, heal int64) {
	c := &s.exchange.pending[len(s.exchange.pending)-1]
	it.heal = heal
	wire := t.freeze() + heal
	if it.back {
		wire = -wire
	}
	e := it.entry
	c.Diffs = append(c.Diffs, Diff{e.name(it.back), time.Duration(e.window) * time.Microsecond, micros(it.start), wire})
	c.items = append(c.items, it)
}
