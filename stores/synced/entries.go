package synced

import "iter"

// entries is the hash table of a shard, with linear probing. A search reads a
// cache line of the table and then the entry; in a map of pointers it reads one
// more. The zero value is an empty table.
type entries struct {
	slots []entrySlot // their number is a power of two, or 0
	used  int
	hand  int // where the next walk begins
}

type entrySlot struct {
	hash  uint64 // ident.a
	entry *entry // nil: the slot is free
}

// leastSlots is the size of the smallest table that has an entry.
const leastSlots = 8

func (t *entries) next(i int) int { return (i + 1) & (len(t.slots) - 1) }

// home returns the slot at which the search for a hash begins.
func (t *entries) home(hash uint64) int {
	return int(hash & uint64(len(t.slots)-1)) //nolint:gosec // below len
}

// get returns the entry of a key, nil if there is none.
func (t *entries) get(id ident) *entry {
	if len(t.slots) == 0 {
		return nil
	}
	for i := t.home(id.a); ; i = t.next(i) {
		s := &t.slots[i]
		if s.entry == nil || s.hash == id.a && s.entry.id == id {
			return s.entry
		}
	}
}

// add adds an entry under a key that has none.
func (t *entries) add(id ident, e *entry) {
	if 4*(t.used+1) > 3*len(t.slots) {
		t.grow()
	}
	e.id = id
	t.place(entrySlot{id.a, e})
	t.used++
}

// place writes a slot where its search will find it. A slot is free.
func (t *entries) place(s entrySlot) {
	i := t.home(s.hash)
	for t.slots[i].entry != nil {
		i = t.next(i)
	}
	t.slots[i] = s
}

func (t *entries) grow() {
	old := t.slots
	t.slots = make([]entrySlot, max(leastSlots, 2*len(old)))
	t.hand = 0
	for _, s := range old {
		if s.entry != nil {
			t.place(s)
		}
	}
}

// remove removes an entry that is in the table. It moves entries behind it
// forward, so that no search for them ends at the free slot.
func (t *entries) remove(e *entry) {
	i := t.home(e.id.a)
	for t.slots[i].entry != e {
		i = t.next(i)
	}
	mask := len(t.slots) - 1
	for j := t.next(i); t.slots[j].entry != nil; j = t.next(j) {
		if home := t.home(t.slots[j].hash); (j-home)&mask >= (j-i)&mask { // its search passes i
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = entrySlot{}
	t.used--
}

// all yields the entries. The table must not be changed meanwhile.
func (t *entries) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, s := range t.slots {
			if s.entry != nil && !yield(s.entry) {
				return
			}
		}
	}
}

// walk yields all entries, beginning behind the last one of the walk before. The
// entry that it has just yielded may be removed: the one that moves into its
// slot is then the next.
func (t *entries) walk() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for range len(t.slots) {
			for e := t.slots[t.hand].entry; e != nil; e = t.slots[t.hand].entry {
				more := yield(e)
				stays := t.slots[t.hand].entry == e
				if !more {
					if stays {
						t.hand = t.next(t.hand)
					}
					return
				}
				if stays {
					break
				}
			}
			t.hand = t.next(t.hand)
		}
	}
}
