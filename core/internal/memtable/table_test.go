package memtable

import (
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

func testTable(limits ...meter.Limit) *table {
	l := newLayout(&rule{}, limits, 1000)
	return newTable(l)
}

// check fails if the table's order is broken, or a key is not found.
func (t *table) check(tb testing.TB, want map[keyHash]uint64) {
	tb.Helper()
	t.checkOrder(tb)
	if t.used != len(want) {
		tb.Fatalf("%d slots used, want %d", t.used, len(want))
	}
	for h, v := range want {
		i, found := t.find(h)
		if !found || t.slot(i)[slotHeader] != v {
			tb.Fatalf("key %x is not found", h)
		}
	}
}

// checkOrder fails if the table's order or its counts are broken.
func (t *table) checkOrder(tb testing.TB) {
	tb.Helper()
	used, opens, last := 0, 0, uint64(0)
	for i := range t.slots {
		if t.open.has(i) {
			opens++
		}
		if t.empty(i) {
			if t.open.has(i) {
				tb.Fatalf("slot %d is empty and open", i)
			}
			continue
		}
		used++
		s := t.slot(i)
		if s[0] < last || t.home(s[0]) > i {
			tb.Fatalf("slot %d is out of order", i)
		}
		for j := t.home(s[0]); j < i; j++ {
			if t.empty(j) {
				tb.Fatalf("slot %d: a gap between it and its home", i)
			}
		}
		last = s[0]
	}
	if used != t.used || opens != t.opens {
		tb.Fatalf("%d slots used, %d counted; %d open, %d counted", used, t.used, opens, t.opens)
	}
}

func blockWords(b *blocks) (n int) {
	if b == nil {
		return 0
	}
	for i := range b.classes {
		for _, c := range b.classes[i].chunks {
			n += len(c.words)
		}
	}
	return n
}

// The table does as a map does, whatever the hashes, also if all keys have one
// home, or one place.
func TestTheTableIsAMap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, spread := range map[string]uint64{"spread": ^uint64(0), "crowded at the end": 1<<40 - 1, "one home": 1<<14 - 1, "few places": 7, "one place": 0} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			table, want := testTable(perHour(5)), map[keyHash]uint64{}
			var keys []keyHash
			for step := range 6000 {
				if r.IntN(3) > 0 || len(keys) == 0 {
					h := keyHash{^(r.Uint64() & spread), r.Uint64N(5000)}
					if _, twice := want[h]; twice {
						continue
					}
					i := table.insert(h)
					table.slot(i)[slotHeader] = uint64(step)
					want[h] = uint64(step)
					keys = append(keys, h)
				} else {
					k := r.IntN(len(keys))
					i, _ := table.find(keys[k])
					table.remove(i)
					delete(want, keys[k])
					keys[k] = keys[len(keys)-1]
					keys = keys[:len(keys)-1]
				}
				if step%500 == 0 {
					table.check(t, want)
				}
			}
			table.check(t, want)
			if _, found := table.find(keyHash{7, 7}); found {
				t.Error("a key that was never inserted is found")
			}
		})
	}
}

// Keys of one home count apart, and keys of one place, too.
func TestKeysOfOneHomeCountApart(t *testing.T) {
	for name, hash := range map[string]func(i uint64) keyHash{
		"one home":  func(i uint64) keyHash { return keyHash{1<<50 + i, 7} },
		"one place": func(i uint64) keyHash { return keyHash{42, i} },
	} {
		t.Run(name, func(t *testing.T) { countApart(t, hash) })
	}
}

func countApart(t *testing.T, hash func(i uint64) keyHash) {
	table := testTable(perHour(5))
	for i := range uint64(5000) {
		h := hash(i)
		if _, found := table.find(h); found {
			t.Fatalf("key %d is taken for another", i)
		}
		table.slot(table.insert(h))[slotHeader] = i
	}
	for i := range uint64(5000) {
		if j, found := table.find(hash(i)); !found || table.slot(j)[slotHeader] != i {
			t.Fatalf("key %d is not found", i)
		}
	}
	if table.homes > 20_000 {
		t.Errorf("the table has grown to %d homes", table.homes)
	}
}

// Seeded hashes spread keys that are alike, over the shards and in a table.
func TestShardsAreEvenlyFilled(t *testing.T) {
	h, shards, homes := newHasher(), make([]int, 64), make([]int, 64)
	for i := range 100_000 {
		sum := h.sum([]byte{'k', byte(i), byte(i >> 8), byte(i >> 16)})
		shards[sum.place&63]++
		homes[sum.place>>58]++
	}
	for i := range 64 {
		for what, n := range map[string]int{"shard": shards[i], "part of a table": homes[i]} {
			if n < 100_000/64/2 || n > 100_000/64*2 {
				t.Errorf("%s %d has %d keys", what, i, n)
			}
		}
	}
	if again := newHasher(); again.seed == (maphash.Seed{}) || again.seed == h.seed {
		t.Error("two stores have the same seed")
	}
}

// Blocks are used again, and their memory is given back when none is in use.
func TestBlocks(t *testing.T) {
	var b blocks
	held := map[uint64]uint64{}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range uint64(5000) {
		if r.IntN(2) == 0 && len(held) > 0 {
			for ref, v := range held {
				if b.get(ref)[1] != v {
					t.Fatalf("block %x has been changed", ref)
				}
				b.free(ref)
				delete(held, ref)
				break
			}
			continue
		}
		ref := b.allocate(1 + r.IntN(3000))
		if _, twice := held[ref]; twice || ref == 0 {
			t.Fatalf("block %x is given twice", ref)
		}
		for _, w := range b.get(ref) {
			if w != 0 {
				t.Fatal("a block is not empty")
			}
		}
		b.get(ref)[1] = i + 1
		held[ref] = i + 1
	}
	for ref := range held {
		b.free(ref)
	}
	for i, c := range b.classes {
		if c.chunks != nil {
			t.Errorf("class %d keeps its memory", i)
		}
	}
}

func TestABlockIsRoundedUpToAPowerOfTwo(t *testing.T) {
	for words, want := range map[int]int{1: 8, 8: 8, 9: 16, 16: 16, 17: 32, 1 << maxBlockClass: 1 << maxBlockClass} {
		var b blocks
		if got := len(b.get(b.allocate(words))); got != want {
			t.Errorf("a block of %d words has %d, want %d", words, got, want)
		}
	}
}

// A layout that changes keeps the states of the limits that stay.
func TestAdopt(t *testing.T) {
	log, buckets := logOf(50), bucketed(50, hour, minute)
	table := testTable(perHour(50), log, buckets)
	const now = 1_764_000_000_000_000
	for i := range uint64(300) {
		h := keyHash{place: (i + 1) << 50}
		slot := table.slot(table.insert(h))
		for j := range table.layout.meters {
			table.layout.meters[j].Charge(table.room(slot, j, &table.layout.meters[j], 20), now, 20)
		}
	}
	next := testTable(buckets, perDay(9), perHour(50)).layout
	next.version = 1
	table.adopt(next)
	for i := range uint64(300) {
		p, found := table.find(keyHash{place: (i + 1) << 50})
		if !found {
			t.Fatalf("key %d is lost", i)
		}
		for j, want := range []int64{30, 9, 30} {
			if got := next.meters[j].Remaining(table.state(table.slot(p), j), now); got != want {
				t.Fatalf("key %d, limit %d: %d left, want %d", i, j, got, want)
			}
		}
	}
	if logs := table.blocks.classes[5]; logs.chunks != nil {
		t.Error("the blocks of the limit that has gone are kept")
	}
}
