package core

const (
	sweptPerInsert = 4 // slots looked at for expired keys when one is inserted
	sampledToEvict = 8 // keys among which the least used is looked for
)

// insert makes a slot for a new key, and room for it first.
func (m *Memory) insert(s *memoryShard, t *memoryTable, h hash128, now int64) []uint64 {
	m.keys.Add(-int64(t.sweep(now, sweptPerInsert)))
	for {
		n := m.keys.Load()
		if n >= m.maxKeys {
			if found, expired := s.evict(now); found {
				if !expired {
					m.evicted.Add(1)
				}
				break // the new key takes the place of the old one
			}
		}
		// A shard without a single key has none to give up; that all others
		// are full then is as likely as thousands of coins falling alike.
		if m.keys.CompareAndSwap(n, n+1) {
			break
		}
	}
	return t.slot(t.insert(h))
}

// sweep removes the expired among the next n slots.
func (t *memoryTable) sweep(now int64, n int) (removed int) {
	for range n {
		if t.cursor >= t.slots {
			t.cursor = 0
			if t.homes > 16*minHomes && t.used < t.homes/8 {
				t.resize(t.used * 2)
			}
		}
		if !t.empty(t.cursor) && t.expired(t.slot(t.cursor), now) {
			t.remove(t.cursor) // what follows moves up to the cursor
			removed++
			continue
		}
		t.cursor++
	}
	return removed
}

func (t *memoryTable) expired(slot []uint64, now int64) bool {
	for i := range t.layout.meters {
		if t.layout.meters[i].expiry(t.state(slot, i)) > now {
			return false
		}
	}
	return true
}

// evict removes one key of the shard: an expired one; else the one that has
// used the least share of its limits among some; one that is being refused
// only where all are, and then the one that would be let in first.
func (s *memoryShard) evict(now int64) (found, expired bool) {
	var v victim
	tried := map[*memoryTable]bool{}
	for {
		t := s.largest(tried)
		if t == nil || v.found && !v.refused {
			break
		}
		tried[t] = true
		v.search(t, now)
	}
	if v.found {
		v.table.remove(v.slot)
	}
	return v.found, v.weight == expiredWeight
}

// largest returns the table with the most keys, of those not tried.
func (s *memoryShard) largest(tried map[*memoryTable]bool) *memoryTable {
	var most *memoryTable
	for _, t := range s.tables {
		if t != nil && !tried[t] && t.used > 0 && (most == nil || t.used > most.used) {
			most = t
		}
	}
	return most
}

// victim is the best key to evict that has been seen.
type victim struct {
	table   *memoryTable
	slot    int
	found   bool
	refused bool
	weight  int64 // refused: how long still; else the share of a limit used, in 1/2^20
}

// expiredWeight is the weight of an expired key, below that of any other.
const expiredWeight = -1

// search looks through the table from where the last one ended, until it has
// found an expired key or the best among some that are not refused.
func (v *victim) search(t *memoryTable, now int64) {
	seen := 0
	for range t.slots {
		if t.cursor >= t.slots {
			t.cursor = 0
		}
		i := t.cursor
		t.cursor++
		if t.empty(i) {
			continue
		}
		seen++
		refused, weight := t.weigh(t.slot(i), now)
		if !v.found || v.refused && !refused || v.refused == refused && weight < v.weight {
			*v = victim{t, i, true, refused, weight}
		}
		if v.found && !v.refused && (v.weight == expiredWeight || seen >= sampledToEvict) {
			return
		}
	}
}

// weigh says how much would be lost with a key.
func (t *memoryTable) weigh(slot []uint64, now int64) (refused bool, weight int64) {
	if t.expired(slot, now) {
		return false, expiredWeight
	}
	var share, wait int64
	for i := range t.layout.meters {
		m, w := &t.layout.meters[i], t.state(slot, i)
		m.advance(w, now)
		left := m.remaining(w, now)
		if left == 0 {
			refused = true
			wait = max(wait, m.wait(w, now, 1))
		}
		if m.capacity > 0 {
			share = max(share, mulDiv(m.capacity-min(left, m.capacity), 1<<20, m.capacity))
		}
	}
	if refused {
		return true, wait
	}
	return false, share
}
