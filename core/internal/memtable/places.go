package memtable

import (
	"cmp"
	"slices"
)

// Lock locks the shards of the places of one operation, always in the same order, so that no
// two operations wait for each other, and looks the keys up. ok is false if the tables are
// closed: nothing but Unlock may be called then.
func Lock(places []Place) (ok bool) {
	if len(places) == 1 {
		places[0].lock()
		return places[0].open()
	}
	var room [8]int
	order := room[:0]
	for i := range places {
		order = append(order, i)
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(places[i].number(), places[j].number()) })
	for n, i := range order {
		if n == 0 || places[i].shard != places[order[n-1]].shard {
			places[i].lock()
		}
	}
	for i := range places {
		if !places[i].open() {
			return false
		}
	}
	return true
}

// Unlock unlocks what Lock has locked.
func Unlock(places []Place) {
	for i := range places {
		if p := &places[i]; p.locked {
			p.shard.mu.Unlock()
		}
	}
}

// number returns the number of the shard.
func (p *Place) number() uint64 { return p.hash.place & p.ts.mask }

func (p *Place) lock() {
	p.shard.mu.Lock()
	p.locked = true
}

// open looks the key up in the locked shard.
func (p *Place) open() (ok bool) {
	if p.ts.closed.Load() {
		return false
	}
	p.table = p.shard.tableFor(p.layout)
	p.Find()
	return true
}

// holds reports whether a slot of the table is that of one of the places. An operation does
// not evict its own keys.
func holds(places []Place, t *table, i int) bool {
	if len(places) < 2 {
		return false
	}
	slot := t.slot(i)
	return slices.ContainsFunc(places, func(p Place) bool { return p.table == t && p.hash == (keyHash{slot[0], slot[1]}) })
}
