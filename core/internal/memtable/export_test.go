package memtable

import (
	"reflect"
	"slices"
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// MinHomes is minHomes, for the tests outside the package.
const MinHomes = minHomes

// Of returns the tables of a core.Memory.
func Of(memory any) *Tables {
	return (*Tables)(reflect.ValueOf(memory).Elem().FieldByName("tables").UnsafePointer())
}

// find returns the table of a rule and the key's place in it.
func (ts *Tables) find(limiter, rule, key string) (t *table, i int, held bool) {
	h := ts.hash.sum([]byte(key))
	if t = ts.shards[h.place&ts.mask].table(ts.rules[ruleName{limiter, rule}].id); t != nil {
		i, held = t.find(h)
	}
	return t, i, held
}

// States returns copies of the states of a key, and whether it is in the tables.
func (ts *Tables) States(limiter, rule, key string) (states map[meter.Identity][]uint64, held bool) {
	t, i, held := ts.find(limiter, rule, key)
	if !held {
		return nil, false
	}
	states = map[meter.Identity][]uint64{}
	for j, id := range t.layout.ids {
		states[id] = slices.Clone(t.state(t.slot(i), j))
	}
	return states, true
}

// Held returns whether the store holds a key.
func (ts *Tables) Held(limiter, rule, key string) bool {
	_, _, held := ts.find(limiter, rule, key)
	return held
}

// Sample returns how many keys of a rule are weighed to evict one.
func (ts *Tables) Sample(limiter, rule string) int {
	return ts.shards[0].table(ts.rules[ruleName{limiter, rule}].id).layout.sample
}

// Shards returns the number of shards.
func (ts *Tables) Shards() int { return len(ts.shards) }

// Rules returns the number of rules that are bound.
func (ts *Tables) Rules() int { return len(ts.rules) }

// MostTables returns the largest number of tables in a shard.
func (ts *Tables) MostTables() (most int) {
	for i := range ts.shards {
		most = max(most, len(ts.shards[i].tables))
	}
	return most
}

// Check fails if the structure of a table is broken.
func (ts *Tables) Check(tb testing.TB) {
	tb.Helper()
	used := 0
	ts.each(func(t *table) {
		t.checkOrder(tb)
		used += t.used
	})
	if used != ts.Len() {
		tb.Fatalf("%d slots are used, Len is %d", used, ts.Len())
	}
}

// Words returns how many words the tables, their bits and their blocks hold, and
// of these how many are blocks.
func (ts *Tables) Words() (all, inBlocks int) {
	ts.each(func(t *table) {
		n, _ := wordsHeld(t.blocks)
		all, inBlocks = all+len(t.words)+len(t.open)+n, inBlocks+n
	})
	return all, inBlocks
}

func (ts *Tables) each(f func(*table)) {
	for i := range ts.shards {
		for _, t := range ts.shards[i].tables {
			if t != nil {
				f(t)
			}
		}
	}
}
