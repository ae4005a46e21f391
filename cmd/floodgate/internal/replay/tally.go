package replay

import (
	"cmp"
	"slices"
)

// tally counts by key with a bounded number of keys. It is exact while they fit.
// When they do not, the rarer half is dropped, and a key that comes (again)
// after that may have been counted less than it should by at most dropped: lossy
// counting, after Manku and Motwani, "Approximate Frequency Counts over Data
// Streams" (2002).
type tally[V any] struct {
	max     int
	weight  func(*V) int64
	entries map[string]*entry[V]
	dropped int64
}

type entry[V any] struct {
	key    string
	value  V
	missed int64 // at most so much is not counted
}

func newTally[V any](most int, weight func(*V) int64) *tally[V] {
	return &tally[V]{max: most, weight: weight, entries: map[string]*entry[V]{}}
}

// at returns the value of a key. key is not kept.
func (t *tally[V]) at(key []byte) *V {
	if e := t.entries[string(key)]; e != nil {
		return &e.value
	}
	return t.add(string(key))
}

func (t *tally[V]) atText(key string) *V {
	if e := t.entries[key]; e != nil {
		return &e.value
	}
	return t.add(key)
}

func (t *tally[V]) add(key string) *V {
	if len(t.entries) >= t.max {
		t.trim()
	}
	e := &entry[V]{key: key, missed: t.dropped}
	t.entries[key] = e
	return &e.value
}

func (t *tally[V]) total(e *entry[V]) int64 { return t.weight(&e.value) + e.missed }

func (t *tally[V]) trim() {
	all := make([]int64, 0, len(t.entries))
	for _, e := range t.entries {
		all = append(all, t.total(e))
	}
	slices.Sort(all)
	t.dropped = all[len(all)/2]
	for key, e := range t.entries {
		if t.total(e) <= t.dropped {
			delete(t.entries, key)
		}
	}
}

// top returns the entries of the largest values, in order.
func (t *tally[V]) top(n int, by func(*V) int64) []*entry[V] {
	var all []*entry[V]
	for _, e := range t.entries {
		if by(&e.value) > 0 {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry[V]) int {
		return cmp.Or(cmp.Compare(by(&b.value), by(&a.value)), cmp.Compare(a.key, b.key))
	})
	return all[:min(n, len(all))]
}
