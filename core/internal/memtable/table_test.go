package memtable

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"unsafe"

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

// wordsHeld returns how many words the blocks have, and how many states.
func wordsHeld(b *blocks) (words, states int) {
	if b == nil {
		return 0, 0
	}
	for _, state := range b.states {
		if state != nil {
			words, states = words+len(state), states+1
		}
	}
	return words, states
}

// The table does as a map does, whatever the hashes, also if all keys have one home, or one place.
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
		if sum.place == sum.check {
			t.Fatal("the two halves of a hash are the same")
		}
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
	if again := newHasher(); again.place == h.place || again.check == h.check || h.place == h.check {
		t.Error("two hashes have the same seed")
	}
}

// A state keeps its words while others come and go, and no number is given twice. Without states,
// nothing is held.
func TestBlocks(t *testing.T) {
	var b blocks
	held := map[uint64]uint64{}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range uint64(5000) {
		if r.IntN(2) == 0 && len(held) > 0 {
			for number, v := range held {
				if b.get(number)[1] != v {
					t.Fatalf("state %d has been changed", number)
				}
				b.release(number)
				delete(held, number)
				break
			}
			continue
		}
		number := b.keep(make([]uint64, 2+r.IntN(3000)))
		if _, twice := held[number]; twice || number == 0 {
			t.Fatalf("number %d is given twice", number)
		}
		b.get(number)[1] = i + 1
		held[number] = i + 1
	}
	for number := range held {
		b.release(number)
	}
	if b.states != nil || b.free != nil {
		t.Errorf("%d numbers are held for no state", len(b.states))
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
			table.layout.meters[j].Charge(new(meter.Result), table.room(slot, j, &table.layout.meters[j], 20), now, 20)
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
			var r meter.Result
			if next.meters[j].Decide(&r, table.state(table.slot(p), j), now, 0); r.Remaining != want {
				t.Fatalf("key %d, limit %d: %d left, want %d", i, j, r.Remaining, want)
			}
		}
	}
	if _, states := wordsHeld(table.blocks); states != 300 {
		t.Errorf("%d states of 300 keys: those of the limit that has gone are kept", states)
	}
}

// Two processors that use two shards do not share a cache line.
func TestAShardFillsACacheLine(t *testing.T) {
	if size := unsafe.Sizeof(shard{}); strconv.IntSize == 64 && size != 64 {
		t.Errorf("a shard has %d bytes, want 64", size)
	}
}

func TestCloseForgetsAllKeys(t *testing.T) {
	ts := New(100, 0)
	limits := []meter.Limit{perHour(2)}
	b, err := ts.Bind("l", []Rule{{"without keys", limits}, {"with one", limits}})
	if err != nil {
		t.Fatal(err)
	}
	p := b.Place(1, []byte("k\x00"))
	p.open()
	p.Insert(nil, now0)
	for range 2 {
		ts.Close()
		if words, _ := ts.Words(); ts.Len() != 0 || ts.active.Load() != 0 || words != 0 {
			t.Errorf("%d keys of %d rules are held, in %d words", ts.Len(), ts.active.Load(), words)
		}
	}
	if b.open().table != nil {
		t.Error("a key is found in closed tables")
	}
}

// testBits returns bits for some slots, as slotBits and as a slice. The bits are few if few is set.
func testBits(r *rand.Rand, slots int, few bool) (b slotBits, model []bool) {
	b, model = newSlotBits(slots), make([]bool, slots)
	for i := range model {
		if r.IntN(2) == 0 && (!few || r.IntN(50) == 0) {
			b.set(i)
			model[i] = true
		}
	}
	return b, model
}

func (b slotBits) check(tb testing.TB, model []bool) {
	tb.Helper()
	for i, want := range model {
		if b.has(i) != want {
			tb.Fatalf("bit %d of %d is %t, want %t", i, len(model), b.has(i), want)
		}
	}
}

// The slots here end before, at and behind the end of a word.
var slotNumbers = []int{1, 12, 63, 64, 65, 127, 128, 129, 200}

func TestBitsMoveWithTheSlots(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, slots := range slotNumbers {
		for i := range slots {
			for _, end := range []int{i, i + r.IntN(slots-i), slots - 1} {
				b, model := testBits(r, slots, false)
				b.unset(end) // it is the bit of an empty slot
				copy(model[i+1:end+1], model[i:end])
				model[i] = false
				b.moveUp(i, end)
				b.check(t, model)
			}
			for _, end := range []int{i + 1, i + 1 + r.IntN(slots-i), slots} {
				b, model := testBits(r, slots, false)
				copy(model[i:end-1], model[i+1:end])
				model[end-1] = false
				b.moveDown(i, end)
				b.check(t, model)
			}
		}
	}
}

// An operation that was under way during a Rebind counts in its own limits,
// wherever the table has them now.
func TestAnOldLayoutFindsItsLimitsInANewTable(t *testing.T) {
	old := bind(t, New(100, 0), perMinute(5), perDay(50), perHour(20))
	old.take(now0, 1)
	next, err := old.Rebind([]Rule{{"r", []meter.Limit{perDay(50), perMinute(5)}}})
	if err != nil {
		t.Fatal(err)
	}
	next.open() // the table takes the new layout over
	now := now0 + 2*minute
	for i := range int64(2) {
		results, _, allowed := old.take(now, 1)
		// The table has no state of the limit per hour any more.
		for j, want := range []int64{5 - (i + 1), 50 - (i + 2), 19} {
			if got := results[j].Remaining; !allowed || got != want {
				t.Errorf("take %d, limit %d: allowed %t, %d left, want %d", i+1, j, allowed, got, want)
			}
		}
	}
	results, _, _ := next.take(now, 1)
	if day, minute := results[0].Remaining, results[1].Remaining; day != 46 || minute != 2 {
		t.Errorf("%d left per day, %d per minute, want 46 and 2", day, minute)
	}
}

func TestARuleGetsTheTableOfOneThatIsGone(t *testing.T) {
	ts := New(100, 0)
	b := bind(t, ts, perHour(5))
	for i := range 10 {
		b.take(now0, 1)
		next, err := b.Rebind([]Rule{{strconv.Itoa(i), []meter.Limit{perHour(5)}}})
		if err != nil {
			t.Fatal(err)
		}
		if next, err = next.Rebind(nil); err != nil {
			t.Fatal(err)
		}
		if b, err = next.Rebind([]Rule{{"r", []meter.Limit{perHour(5)}}}); err != nil {
			t.Fatal(err)
		}
	}
	// A rule that comes while the one before is still there needs a second table.
	if ts.ids != 2 || len(ts.freeIDs) != 1 {
		t.Errorf("%d tables, of which %d have no rule; want 2 and 1", ts.ids, len(ts.freeIDs))
	}
}
