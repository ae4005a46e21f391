package memtable

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// keyHash stands for a key of a rule. place chooses the shard, and orders the keys
// of a table. Keys whose places are equal are told apart by check: the probability
// that any two of n keys are equal in both is about n²/2¹²⁹, 10⁻²⁷ for a million
// keys.
type keyHash struct{ place, check uint64 }

// hasher makes hashes that cannot be predicted outside the process, so that no
// choice of keys makes them crowd one place of a table or share a counter.
type hasher struct {
	seed          maphash.Seed
	check, factor uint64
}

func newHasher() hasher {
	return hasher{maphash.MakeSeed(), rand.Uint64(), rand.Uint64() | 1}
}

// sum returns the hash of a key. place is not 0, which marks an empty slot.
func (h *hasher) sum(key []byte) keyHash {
	return keyHash{max(1, maphash.Bytes(h.seed, key)), check(h.check, h.factor, key)}
}

// check returns a hash of s, eight bytes at a time: each is multiplied by factor, and the halves of
// the product are joined, as wyhash does (https://github.com/wangyi-fudan/wyhash). It is quicker
// than a second maphash. It need not resist attacks: nobody can find keys of equal check and place
// without the seeds of both.
func check(seed, factor uint64, s []byte) uint64 {
	n := len(s)
	h := fold(seed^uint64(n), factor)
	if n < 8 {
		var all uint64
		for i := range n {
			all |= uint64(s[i]) << (8 * i)
		}
		return fold(h^all, factor)
	}
	for i := 0; i+8 < n; i += 8 {
		h = fold(h^word(s, i), factor)
	}
	return fold(h^word(s, n-8), factor) // the last eight bytes, some of them again
}

func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// word returns the eight bytes from i on.
func word(s []byte, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
