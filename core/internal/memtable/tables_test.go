package memtable

import (
	"strconv"
	"testing"
	"unsafe"
)

// A shard has 1,024 keys or more on average, unless it is the only one.
func TestMaxKeysDecidesTheNumberOfShards(t *testing.T) {
	for maxKeys, want := range map[int]int{
		1: 1, 2048: 1, 2049: 2, 4096: 2, 4097: 4, 8192: 4, 8193: 8, 1_000_000: 512,
	} {
		if got := New(maxKeys).Shards(); got != want {
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
