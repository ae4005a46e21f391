package memtable

// sweptPerInsert is how many slots of a shard are examined for expired keys when a key is inserted.
// It must be 2 or more: as many expired keys must be removed as new ones arrive.
const sweptPerInsert = 8

// insert makes a slot for the place's key. It returns false if all keys that could be evicted
// belong to the same operation.
func (ts *Tables) insert(p *Place, others []Place, now int64) bool {
	s, t := p.shard, p.table
	s.sweep(ts, t, now)
	ts.trimRule(t, others, now)
	if !ts.makeRoom(s, t, others, now) {
		return false
	}
	ts.hold(t.layout.rule, 1)
	p.has(t.insert(p.hash))
	return true
}

// makeRoom counts one more key, or evicts one if the store is full.
func (ts *Tables) makeRoom(s *shard, own *table, others []Place, now int64) bool {
	for {
		n := ts.keys.Load()
		if n >= ts.maxKeys {
			return ts.evict(s, own, others, now)
		}
		if ts.keys.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// trimRule evicts a key of the table's rule if the rule has as many as its large states allow, and
// two if it has more, as after a Rebind. It evicts in this shard only, so that the rule may have a
// few more.
func (ts *Tables) trimRule(t *table, others []Place, now int64) {
	most := t.layout.most
	if most == 0 {
		return
	}
	for range 2 {
		if t.layout.rule.held.Load() < most {
			return
		}
		v := t.search(others, now)
		if v.table == nil {
			return
		}
		ts.remove(v)
		ts.keys.Add(-1)
	}
}

// hold counts keys that a rule has got or lost, and the rules that hold keys.
func (ts *Tables) hold(rule *rule, n int64) {
	if n == 0 {
		return
	}
	switch rule.held.Add(n) {
	case 0:
		ts.active.Add(-1)
	case n:
		ts.active.Add(1)
	}
}

// sweep removes the expired among the shard's next slots. It goes through all tables of the shard
// in turn, and frees those that have become empty, except own, which is about to get a key.
func (s *shard) sweep(ts *Tables, own *table, now int64) {
	removed, rechecks := int64(0), own.layout.sample
	for range sweptPerInsert {
		if s.turn >= len(s.tables) {
			s.turn, s.cursor = 0, 0
		}
		t := s.tables[s.turn]
		if t == nil || s.cursor >= t.slots {
			if t != nil {
				t.shrink()
				if t.used == 0 && t != own {
					t.drop()
				}
			}
			s.turn++
			s.cursor = 0
			continue
		}
		i := s.cursor
		s.cursor++
		if t.empty(i) {
			continue
		}
		slot := t.slot(i)
		if t.expired(slot, now) {
			t.remove(i)
			s.cursor = i // the slots behind have moved down
			ts.hold(t.layout.rule, -1)
			removed++
			continue
		}
		t.trim(slot, now)
		if rechecks > 0 && !t.open.has(i) {
			t.reopen(i, now)
			rechecks--
		}
	}
	if removed > 0 {
		ts.keys.Add(-removed)
	}
}

// evict removes one key of the shard, so that a key of the table own can take its place. It returns
// false if it has found none that it may remove.
func (ts *Tables) evict(s *shard, own *table, others []Place, now int64) bool {
	v := ts.victim(s, own, others, now)
	if v.table == nil {
		return false
	}
	ts.remove(v)
	return true
}

// remove removes the key that has been chosen.
func (ts *Tables) remove(v victim) {
	v.table.remove(v.slot)
	ts.hold(v.table.layout.rule, -1)
	if v.weight != expiredWeight {
		ts.evicted.Add(1)
	}
}

// victim finds the key to evict: of the new key's rule if that has reached its share of MaxKeys,
// else of the largest rule above its share. If the store is full and a rule has less than its
// share, another has more. Only the new key's shard is locked, so the victim must be in it: if the
// shard has no key of such a rule, a key of any rule is evicted.
func (ts *Tables) victim(s *shard, own *table, others []Place, now int64) victim {
	rules, held := ts.active.Load(), own.layout.rule.held.Load()
	if held == 0 {
		rules++
	}
	share := ts.maxKeys / max(rules, 1)
	if held >= share {
		if v := own.search(others, now); v.table != nil {
			return v
		}
	}
	for _, t := range s.aboveShare(share) {
		if t != nil {
			if v := t.search(others, now); v.table != nil {
				return v
			}
		}
	}
	for _, t := range s.tables {
		if t != nil {
			if v := t.search(others, now); v.table != nil {
				return v
			}
		}
	}
	return victim{}
}

// aboveShare returns two tables of the shard, each of the largest rule that holds more keys than
// share: among the tables with an open slot, then among all.
func (s *shard) aboveShare(share int64) (tables [2]*table) {
	most := [2]int64{share, share}
	for _, t := range s.tables {
		if t == nil || t.used == 0 {
			continue
		}
		held := t.layout.rule.held.Load()
		if t.opens > 0 && held > most[0] {
			tables[0], most[0] = t, held
		}
		if held > most[1] {
			tables[1], most[1] = t, held
		}
	}
	return tables
}

// victim is the best key to evict among those examined.
type victim struct {
	table  *table // nil: none
	slot   int
	denied bool
	weight int64 // see weigh
}

func (v *victim) better(o victim) bool {
	if v.denied != o.denied {
		return !v.denied
	}
	return v.weight < o.weight
}

// search examines some keys of the table, from where the last search ended, and returns the best of
// them to evict: an expired one, else the one that has used the least share of its limits. If no
// slot is open, it is the denied key that recovers soonest.
func (t *table) search(others []Place, now int64) (best victim) {
	if t.used == 0 {
		return victim{}
	}
	t.searchOpen(others, now, &best)
	if best.table != nil && !best.denied {
		return best
	}
	left := t.layout.sample
	for range t.slots {
		if t.hand >= t.slots {
			t.hand = 0
		}
		at := t.hand
		t.hand++
		if !t.empty(at) && !holds(others, t, at) {
			t.examine(at, now, &best)
			if left--; left == 0 {
				break
			}
		}
	}
	return best
}

// searchOpen examines open slots. A key whose slot is open may be denied all the same if its quota
// was lowered: then its slot is closed, and more slots are examined than otherwise.
func (t *table) searchOpen(others []Place, now int64, best *victim) {
	left, from, begin, turned := t.layout.sample, t.hand, t.hand, false
	for denied := 0; left > 0 && denied < 4*t.layout.sample; {
		i := t.open.next(from)
		if i < 0 && !turned {
			turned, from = true, 0
			continue
		}
		if i < 0 || turned && i >= begin {
			return
		}
		from = i + 1
		t.hand = from
		if holds(others, t, i) {
			continue
		}
		switch v := t.examine(i, now, best); {
		case v.denied:
			t.deny(i)
			denied++
		case v.weight == expiredWeight:
			return
		default:
			left--
		}
	}
}

// examine weighs a key and keeps it as the best if it is.
func (t *table) examine(i int, now int64, best *victim) victim {
	v := victim{table: t, slot: i}
	v.denied, v.weight = t.weigh(t.slot(i), now)
	if best.table == nil || v.better(*best) {
		*best = v
	}
	return v
}
