package memtable

import (
	"strings"
	"testing"
)

// texts are all texts of up to n of some characters.
func texts(n int) []string {
	all := []string{""}
	for from := 0; n > 0; n-- {
		end := len(all)
		for _, s := range all[from:end] {
			for _, c := range []string{"\x00", "\x01", "a"} {
				all = append(all, s+c)
			}
		}
		from = end
	}
	return all
}

// Keys are told apart by either half of the hash, so that one is enough if the other
// is the same for all.
func TestEitherHalfOfAHashTellsKeysApart(t *testing.T) {
	h, places, checks := newHasher(), map[uint64]string{}, map[uint64]string{}
	keys := texts(6)
	for n := range 40 { // one byte after another is another one
		for i := range n {
			b := []byte(strings.Repeat("k", n))
			b[i] = 'x'
			keys = append(keys, string(b))
		}
	}
	for _, key := range keys {
		sum := h.sum([]byte(key))
		for half, seen := range map[uint64]map[uint64]string{sum.place: places, sum.check: checks} {
			if other, taken := seen[half]; taken && other != key {
				t.Fatalf("%q and %q have the same half %x", key, other, half)
			}
			seen[half] = key
		}
	}
	if again := newHasher(); again.seed == h.seed || again.check == h.check || again.factor == h.factor || again.factor%2 == 0 {
		t.Error("two stores have the same seed")
	}
}

// Keys of both kinds, with and without a zero byte at their end, are all
// different.
func TestDifferentKeysHaveDifferentHashes(t *testing.T) {
	h, seen := newHasher(), map[keyHash]string{}
	for i := range 50_000 {
		for _, key := range []string{string(rune(i)), string(rune(i)) + "\x00", "\x00" + string(rune(i)) + "\x01"} {
			sum := h.sum([]byte(key))
			if other, taken := seen[sum]; taken && other != key {
				t.Fatalf("%q and %q have the hash %x", key, other, sum)
			}
			seen[sum] = key
		}
	}
}
