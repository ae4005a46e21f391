package memtable

import "hash/maphash"

// hasher makes hashes that cannot be predicted outside the process, so that no
// choice of keys makes them crowd one place of a table or share a counter. A
// hash of 64 bits identifies a key of a rule: the chance that any two of n keys
// share one is about n²/2⁶⁵, 3 in 10⁸ for a million keys.
//
// A key that ends in a zero byte is hashed without it, with a seed of its own,
// so that text hashes the text of such a key where it is.
type hasher struct{ texts, others maphash.Seed }

func newHasher() hasher { return hasher{maphash.MakeSeed(), maphash.MakeSeed()} }

// sum returns the hash of a key. It is not 0, which marks an empty slot.
func (h *hasher) sum(key []byte) uint64 {
	if end := len(key) - 1; end >= 0 && key[end] == 0 {
		return max(1, maphash.Bytes(h.texts, key[:end]))
	}
	return max(1, maphash.Bytes(h.others, key))
}

// text returns the hash of a key that is s and a zero byte.
func (h *hasher) text(s string) uint64 { return max(1, maphash.String(h.texts, s)) }
