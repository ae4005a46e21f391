package memtable

import "hash/maphash"

// hash128 identifies a key. The chance that two of a million keys share one is
// below 10⁻²⁶.
type hash128 struct{ a, b uint64 }

// hasher makes hashes that cannot be predicted outside the process, so that no
// choice of keys makes them crowd one place of a table or share a counter.
type hasher struct{ a, b maphash.Seed }

func newHasher() hasher { return hasher{maphash.MakeSeed(), maphash.MakeSeed()} }

func (h *hasher) sum(key []byte) hash128 {
	s := hash128{maphash.Bytes(h.a, key), maphash.Bytes(h.b, key)}
	if s.a == 0 {
		s.a = 1 // 0 marks an empty slot
	}
	return s
}
