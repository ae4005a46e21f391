package memtable

import (
	"strconv"
	"testing"
	"unsafe"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// A shard has 1,024 keys or more on average, unless it is the only one.
func TestMaxKeysDecidesTheNumberOfShards(t *testing.T) {
	for maxKeys, want := range map[int]int{
		1: 1, 2048: 1, 2049: 2, 4096: 2, 4097: 4, 8192: 4, 8193: 8, 1_000_000: 512,
	} {
		if got := New(maxKeys, 0).Shards(); got != want {
			t.Errorf("MaxKeys %d: %d shards, want %d", maxKeys, got, want)
		}
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
