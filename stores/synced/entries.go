package synced

import (
	"iter"
	"math/bits"
)

// entries is the hash table of a shard, with linear probing. A search reads the
// tags, which are small enough to stay in the cache, and then mostly one front.
// The zero value is an empty table.
type entries struct {
	tags   []uint8 // of the fronts: 0 is a free place
	fronts []front
	used   int
	hand   int // where the next walk begins
}

// front is what a decision on a known key reads and writes of an entry: one
// cache line. Everything else reads and writes the entry, which open brings up to
// date.
type front struct {
	id    ident
	entry *entry
	added int64 // hits of the current window that the entry does not have yet

	known  bool  // the following are those of the entry
	rounds int8  // so many exchanges more; not 0 if the entry is marked
	start  int64 // of the current window
	count  counts
}

// open returns the entry with all hits. The front knows nothing of it afterwards.
func (f *front) open() *entry {
	f.entry.current.added.diff += f.added
	f.added, f.known = 0, false
	return f.entry
}

// learn makes the front know the entry.
func (f *front) learn() {
	e := f.open()
	f.start, f.count = e.start, counts{e.current.count(), e.previous.count()}
	f.known = true
}

// charge adds hits to the current window. The front knows the entry.
func (f *front) charge(hits int64) {
	f.added += hits
	f.count.current += hits
}

// leastPlaces is the size of the smallest table that is not empty.
const leastPlaces = 8

// home returns the place at which the search for a key begins.
func (t *entries) home(id ident) int {
	i, _ := bits.Mul64(id.a, uint64(len(t.tags)))
	return int(i) //nolint:gosec // below len
}

func (t *entries) next(i int) int {
	if i++; i < len(t.tags) {
		return i
	}
	return 0
}

// tag returns a part of the key's hashes that neither its shard nor its home
// depends on. It is not 0.
func (id ident) tag() uint8 { return uint8(id.b>>56) | 1 } //nolint:gosec // the highest bits

// find returns the front of a key, nil if there is none. It is valid until the
// table changes.
func (t *entries) find(id ident) *front {
	if t.used == 0 {
		return nil
	}
	tag := id.tag()
	for i := t.home(id); t.tags[i] != 0; i = t.next(i) {
		if t.tags[i] == tag && t.fronts[i].id == id {
			return &t.fronts[i]
		}
	}
	return nil
}

// get returns the entry of a key, nil if there is none.
func (t *entries) get(id ident) *entry {
	if f := t.find(id); f != nil {
		return f.open()
	}
	return nil
}

// add adds an entry under a key that has none.
func (t *entries) add(id ident, e *entry) {
	if 5*(t.used+1) > 4*len(t.tags) {
		t.grow()
	}
	e.id = id
	t.place(front{id: id, entry: e})
	t.used++
}

// place writes a front to the first free place of its search. There is one.
func (t *entries) place(f front) {
	i := t.home(f.id)
	for t.tags[i] != 0 {
		i = t.next(i)
	}
	t.tags[i], t.fronts[i] = f.id.tag(), f
}

func (t *entries) grow() {
	old := t.fronts
	n := max(leastPlaces, len(old)+len(old)/2)
	t.tags, t.fronts, t.hand = make([]uint8, n), make([]front, n), 0
	for i := range old {
		if old[i].entry != nil {
			t.place(old[i])
		}
	}
}

// remove removes an entry that is in the table. It moves others forward, so that
// no search for them ends at the free place.
func (t *entries) remove(e *entry) {
	i := t.home(e.id)
	for t.fronts[i].entry != e {
		i = t.next(i)
	}
	for j := t.next(i); t.tags[j] != 0; j = t.next(j) {
		if home := t.home(t.fronts[j].id); t.distance(home, j) >= t.distance(i, j) { // its search passes i
			t.tags[i], t.fronts[i] = t.tags[j], t.fronts[j]
			i = j
		}
	}
	t.tags[i], t.fronts[i] = 0, front{}
	t.used--
}

// distance returns how many steps of next lead from place i to place j.
func (t *entries) distance(i, j int) int {
	if j < i {
		j += len(t.tags)
	}
	return j - i
}

// all yields the entries. The table must not be changed meanwhile.
func (t *entries) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for i := range t.fronts {
			if t.tags[i] != 0 && !yield(t.fronts[i].open()) {
				return
			}
		}
	}
}

// walk yields all entries, beginning behind the last one of the walk before. The
// entry that it has just yielded may be removed: the one that moves into its
// place is then the next.
func (t *entries) walk() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		more := true
		for left := len(t.tags); more && left > 0; left-- {
			for i := t.hand; more && t.tags[i] != 0; {
				e := t.fronts[i].open()
				more = yield(e)
				if t.fronts[i].entry == e {
					break
				}
			}
			t.hand = t.next(t.hand)
		}
	}
}
