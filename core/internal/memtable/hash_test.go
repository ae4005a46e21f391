package memtable

import (
	"testing"

	"pgregory.net/rapid"
)

// A text is the key that ends in a zero byte, and no other key.
func TestATextHasTheHashOfItsKey(t *testing.T) {
	h := newHasher()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a'}), 0, 6).Draw(t, "key")
		text := rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, 'a'}), 0, 6, -1).Draw(t, "text")
		if same, want := h.sum(key) == h.text(text), string(key) == text+"\x00"; same != want {
			t.Fatalf("the key %q and the text %q have the same hash: %t, want %t", key, text, same, want)
		}
	})
}

// Keys of both kinds, with and without a zero byte at their end, are all
// different.
func TestDifferentKeysHaveDifferentHashes(t *testing.T) {
	h, seen := newHasher(), map[uint64]string{}
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
