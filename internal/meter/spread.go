package meter

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// Share returns the share of a window by which the windows of a key are moved, in
// 1/2^64: the first 64 bits of the SHA-256 of the key's stored name. It never
// changes.
func Share(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(sum[:])
}

// Spreads reports whether each key has windows of its own: see ForShare.
func (m *Meter) Spreads() bool { return m.spread }

// ForShare returns the meter for a key with a share. room is where a new one is
// made; it may be m itself.
func (m *Meter) ForShare(share uint64, room *Meter) *Meter {
	if !m.spread {
		return m
	}
	if m != room {
		*room = *m
	}
	room.shift = m.ShiftOf(share)
	return room
}

// ShiftOf returns by how many microseconds the windows of a key with a share are
// moved.
func (m *Meter) ShiftOf(share uint64) int64 {
	shift, _ := bits.Mul64(share, uint64(m.window))
	return int64(shift)
}
