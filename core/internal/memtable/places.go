package memtable

import (
	"slices"
	"sync"
)

// Places is the places of an operation over several keys. At most one goroutine
// uses it at a time.
type Places struct {
	b      *Binding
	all    []Place
	shards []uint64 // of the places, ascending, each once
	locked int      // how many of the shards are locked
}

var placesPool = sync.Pool{New: func() any { return new(Places) }}

// Places returns an empty Places. The caller calls Add for each key, then Lock,
// and Unlock in any case.
func (b *Binding) Places() *Places {
	k := placesPool.Get().(*Places)
	k.b, k.all, k.shards, k.locked = b, k.all[:0], k.shards[:0], 0
	return k
}

// Add adds a key.
func (k *Places) Add(rule int, key []byte) {
	p := k.b.Place(rule, key)
	k.all = append(k.all, p)
	k.shards = append(k.shards, p.shard)
}

// At returns the i-th place, in the order in which they were added.
func (k *Places) At(i int) *Place { return &k.all[i] }

// Lock locks the shards of all places, always in the same order, so that no two
// operations wait for each other. Find has not been called for any of them. ok
// is false if the tables are closed: nothing but Unlock may be called then.
func (k *Places) Lock() (ok bool) {
	ts := k.b.ts
	slices.Sort(k.shards)
	k.shards = slices.Compact(k.shards)
	for _, s := range k.shards {
		ts.shards[s].mu.Lock()
		k.locked++
	}
	if ts.closed.Load() {
		return false
	}
	for i := range k.all {
		p := &k.all[i]
		p.table = ts.shards[p.shard].tableFor(p.layout)
	}
	return true
}

// Unlock unlocks what Lock has locked. The Places must not be used afterwards.
func (k *Places) Unlock() {
	ts := k.b.ts
	for _, s := range k.shards[:k.locked] {
		ts.shards[s].mu.Unlock()
	}
	clear(k.all)
	k.b = nil
	placesPool.Put(k)
}

// holds reports whether a slot of the table is that of one of the places. An
// operation does not evict its own keys.
func (k *Places) holds(t *table, i int) bool {
	if k == nil {
		return false
	}
	slot := t.slot(i)
	for j := range k.all {
		if p := &k.all[j]; p.table == t && p.hash == (keyHash{slot[0], slot[1]}) {
			return true
		}
	}
	return false
}
