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

// States returns copies of the states of a key, and whether it is in the tables.
func (ts *Tables) States(limiter, rule, key string) (states map[meter.Identity][]uint64, held bool) {
	h := ts.hash.sum([]byte(key))
	t := ts.shards[h.b&ts.mask].table(ts.rules[ruleName{limiter, rule}].id)
	if t == nil {
		return nil, false
	}
	i, found := t.find(h)
	if !found {
		return nil, false
	}
	states = map[meter.Identity][]uint64{}
	for j, id := range t.layout.ids {
		states[id] = slices.Clone(t.state(t.slot(i), j))
	}
	return states, true
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

// Words returns how many words the tables and their blocks hold, and of these
// how many are blocks.
func (ts *Tables) Words() (all, inBlocks int) {
	ts.each(func(t *table) {
		n := blockWords(t.blocks)
		all, inBlocks = all+len(t.words)+n, inBlocks+n
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
