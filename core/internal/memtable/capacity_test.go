package memtable

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// evenHash returns the i-th of hashes that are spread evenly, however many there are.
func evenHash(i int) keyHash { return keyHash{place: bits.Reverse64(uint64(i + 1))} }

// Memory is given back if less than an eighth of a long table is used.
func TestATableShrinks(t *testing.T) {
	for _, c := range []struct{ homes, used, want int }{
		{homes: minHomes, want: minHomes},
		{homes: minHomes + 1, want: 0},
		{homes: 1000, want: 0},
		{homes: 100, used: 1, want: 100},
		{homes: 128, used: 1, want: 128},
		{homes: 129, used: 1, want: minHomes},
		{homes: 129, used: 15, want: 30},
		{homes: 129, used: 16, want: 129},
		{homes: 1000, used: 124, want: 248},
		{homes: 1000, used: 125, want: 1000},
		{homes: 1000, used: 800, want: 1000},
	} {
		table, want := testTable(perHour(5)), map[keyHash]uint64{}
		table.allocate(c.homes)
		for i := range c.used {
			table.slot(table.insert(evenHash(i)))[slotHeader] = uint64(i)
			want[evenHash(i)] = uint64(i)
		}
		table.shrink()
		if table.homes != c.want {
			t.Errorf("%d of %d homes are used: the table gets %d homes, want %d", c.used, c.homes, table.homes, c.want)
		}
		table.check(t, want)
	}
}

// A store that holds MaxKeys keys takes the bytes that MemoryConfig.MaxKeys documents.
func TestAFullStoreTakesTheDocumentedBytes(t *testing.T) {
	const perShard = 2048
	for _, limits := range []int{1, 3} {
		ts := New(4*perShard, 0)
		b := bind(t, ts, []meter.Limit{perHour(5), perDay(5), perMinute(5)}[:limits]...)
		counts, inserted := map[uint64]int{}, 0
		for i := uint64(0); inserted < ts.MaxKeys(); i++ {
			p := b.Place(0, binary.BigEndian.AppendUint64(nil, i))
			if counts[p.number()]++; counts[p.number()] > perShard {
				continue
			}
			inserted++
			p.open()
			p.Insert(nil, now0)
			for j := range limits {
				m := &p.layout.meters[j]
				m.Charge(new(meter.Result), p.table.state(p.slot, j), now0, 1)
			}
		}
		if ts.Len() != inserted {
			t.Fatalf("%d keys are held, want %d", ts.Len(), inserted)
		}
		words, _ := ts.Words()
		if got, want := 8*words/ts.MaxKeys(), 23+18*limits; got > want {
			t.Errorf("%d limits: a key takes %d bytes, documented are %d", limits, got, want)
		}
	}
}

// A rule whose states can become large has fewer keys, so that they fit into maxBytes. Each of
// them is counted, other rules have as many as before, and so has this one once its states are
// small again.
func TestARuleWithLargeStatesHasFewerKeys(t *testing.T) {
	const maxBytes = 4 << 20
	ts := New(100_000, maxBytes)
	large := Rule{"large", []meter.Limit{bucketed(1000, day, minute)}} // 16 KiB a key
	b, err := ts.Bind("l", []Rule{large, {"small", []meter.Limit{perHour(5)}}})
	if err != nil {
		t.Fatal(err)
	}
	most := int(b.layouts[0].most)
	if want := max(maxBytes>>13*9/10, leastInShard*ts.Shards()); most < want*9/10 || b.layouts[1].most != 0 {
		t.Fatalf("at most %d large keys and %d small ones, want about %d and all", most, b.layouts[1].most, want)
	}
	charge := func(b *Binding, rule, i int) {
		t.Helper()
		places := []Place{b.Place(rule, fmt.Appendf(nil, "key %d", i))}
		defer Unlock(places)
		if !Lock(places) {
			t.Fatal("closed")
		}
		p := &places[0]
		p.Find()
		var r meter.Result
		m, w := p.Limit(0, meter.Own)
		m.Decide(&r, w, now0, 1)
		p.Insert(places, now0)
		if p.Report(0, meter.Own, now0, 1, true, &r); !p.Known() || r.Remaining != b.layouts[rule].meters[0].Quota-1 {
			t.Fatalf("key %d has %d left", i, r.Remaining)
		}
	}
	held := func(b *Binding, rule int) int { return int(b.layouts[rule].rule.held.Load()) }
	for i := range 3 * most {
		charge(b, 0, i)
		charge(b, 1, i)
	}
	if n := held(b, 0); n > most+ts.Shards() || held(b, 1) != 3*most {
		t.Errorf("%d large keys of at most %d, and %d of %d small ones are held", n, most, held(b, 1), 3*most)
	}
	ts.Check(t)
	if b, err = b.Rebind([]Rule{{"large", []meter.Limit{perHour(5)}}}); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * most {
		charge(b, 0, 10*most+i)
	}
	if n := held(b, 0); n < 2*most {
		t.Errorf("with small states, %d keys are held", n)
	}
}
