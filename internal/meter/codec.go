package meter

import (
	"encoding/binary"
	"math"
)

// AppendState appends the bytes of a state. ReadState reads them.
func (m *Meter) AppendState(dst []byte, w []uint64) []byte { return m.arithmetic.append(m, dst, w) }

// ReadState reads a state. If its bytes are not those of a state of this
// algorithm, r is bad afterwards, and the result means nothing. The result may
// be nil if the algorithm's state grows.
func (m *Meter) ReadState(r *Reader) []uint64 { return m.arithmetic.read(m, r) }

func appendTime(dst []byte, t int64) []byte { return binary.AppendVarint(dst, t) }

func appendCount(dst []byte, n uint64) []byte { return binary.AppendUvarint(dst, n) }

// Reader reads numbers of variable length (encoding/binary) until one is
// malformed. Then it is bad.
type Reader struct {
	Rest []byte
	Bad  bool
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.Rest) == 0 {
		r.Bad = true
		return 0
	}
	b := r.Rest[0]
	r.Rest = r.Rest[1:]
	return b
}

// Uvarint reads a number that is at most most.
func (r *Reader) Uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 || v > most {
		r.Bad = true
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// maxTime is the latest time that a state may have, and -maxTime the earliest:
// about 290 years from 1970. No sum of a time and a window overflows then.
const maxTime = math.MaxInt64 / 1000

// Time reads a time.
func (r *Reader) Time() int64 {
	v, n := binary.Varint(r.Rest)
	if n <= 0 || v > maxTime || v < -maxTime {
		r.Bad = true
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}
