package swapstore

import (
	"bytes"
	"encoding/binary"
	"math"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// A stored value holds the states of the limits of one key of one rule, for stores that keep bytes.
// Programs that share a store may have different limits under one name: each writes its own states
// and keeps the states of others unchanged until they expire.
//
//	value  = version record*
//	record = length expiry kind body
//
// The version is one byte. The others are variable-length integers (encoding/binary). The length
// counts the bytes that follow in the record. The expiry is the time from which the record means
// the same as none, in signed microseconds since the Unix epoch. The kind is algorithm × 2, + 1 if
// windows are aligned. The body of a limit is its window, its precision and its state; of a limit
// with a Zone, a hash of the zone's name in place of the precision.
//
// A later format that keeps the version must keep records of this shape: records of unknown kinds
// are kept like those of unknown limits.
const stateVersion = 2

// newestVersion is the last version byte that a later format may have. A value with one of them is
// never replaced: it has the counters of a newer program.
const newestVersion = 15

// kindDenial is the kind of a record that denies the key until it expires. Its body is the length
// of that time in microseconds. OpBlock writes it, and core.Config.DenyUnreadable replaces an
// unreadable value by it. Of several, the one that ends last is kept.
const kindDenial = 126

// maxValue is the length of the longest value that is read: no program writes a longer one.
// maxForeign is how many records of other programs a write keeps: those that were written last.
const (
	maxValue   = 4 << 20
	maxForeign = 32
)

// foreignSlack is how many microseconds a foreign record is kept after it has expired, because the
// clock of the program that wrote it may be late.
const foreignSlack = int64(time.Minute / time.Microsecond)

// limit is a limit of a rule, with its identity as records begin with it.
type limit struct {
	meter.Meter
	id []byte
}

func newLimit(l core.Limit) limit {
	m := meter.FromCore(l)
	id := m.Identity()
	b := binary.AppendUvarint(nil, uint64(id.Kind()))
	b = binary.AppendUvarint(b, uint64(id.Window))
	return limit{meter.New(m), binary.AppendUvarint(b, uint64(id.Detail()))}
}

// stored is a value that has been read.
type stored struct {
	states  [][]uint64 // of the rule's limits, in order
	denial  record     // denies the key until it expires, the zero record for none
	foreign []record
	is      readability
}

// readability is the result of reading a value.
type readability uint8

const (
	readable   readability = iota
	unreadable             // it is foreign, or has been damaged
	newer                  // it has been written by a later version
)

// record is a record that is not the state of one of the rule's limits.
type record struct {
	expiry int64
	body   []byte // the kind included
}

// denialOf returns a record that denies its key for this length of time.
func denialOf(now, length int64) record {
	return record{now + length, binary.AppendUvarint([]byte{kindDenial}, uint64(length))}
}

// encode returns the value at now, and when the last of its records expires.
func (v *stored) encode(limits []limit, now int64) (value []byte, expiry int64) {
	value, expiry = []byte{stateVersion}, now
	add := func(end int64, body []byte) {
		var buf [binary.MaxVarintLen64]byte
		stamp := binary.AppendVarint(buf[:0], end)
		value = binary.AppendUvarint(value, uint64(len(stamp)+len(body)))
		value = append(append(value, stamp...), body...)
		expiry = max(expiry, end)
	}
	var body []byte
	for i := range limits {
		if end := limits[i].Expiry(v.states[i]); end > now {
			body = limits[i].AppendState(append(body[:0], limits[i].id...), v.states[i])
			add(end, body)
		}
	}
	if v.denial.expiry > now {
		add(v.denial.expiry, v.denial.body)
	}
	for _, f := range v.foreign[:min(len(v.foreign), maxForeign)] {
		add(f.expiry, f.body)
	}
	return value, expiry
}

// decode reads a value. A limit that has no record there gets the state of a key never seen. If any
// part of the value is malformed, all limits get that state: a foreign value, or a part of one,
// must not decide on a quota.
func decode(value []byte, limits []limit, now int64) *stored {
	v := &stored{states: make([][]uint64, len(limits))}
	switch {
	case len(value) == 0, value[0] < stateVersion, value[0] > newestVersion, len(value) > maxValue:
		v.is = unreadable
	case value[0] > stateVersion:
		v.is = newer
	default:
		r := meter.Reader{Rest: value[1:]}
		for len(r.Rest) > 0 && !r.Bad {
			length := r.Uvarint(math.MaxUint64)
			if r.Bad = r.Bad || length > uint64(len(r.Rest)); !r.Bad {
				r.Bad = !v.decodeRecord(r.Rest[:length], limits, now)
				r.Rest = r.Rest[length:]
			}
		}
		if r.Bad {
			*v = stored{states: make([][]uint64, len(limits)), is: unreadable}
		}
	}
	for i := range limits {
		if v.states[i] == nil && !limits[i].Grows() {
			v.states[i] = make([]uint64, limits[i].FixedWords())
		}
	}
	return v
}

// decodeRecord reads the part of a record that follows its length. It returns false if the record
// is malformed.
func (v *stored) decodeRecord(b []byte, limits []limit, now int64) bool {
	r := meter.Reader{Rest: b}
	expiry := r.Time()
	body := r.Rest
	kind := r.Uvarint(math.MaxUint64)
	if r.Bad {
		return false
	}
	if kind == kindDenial {
		length := int64(r.Uvarint(uint64(core.MaxWindow.Microseconds())))
		// An expiry further ahead was written by a clock that has been set back.
		if expiry > max(now, v.denial.expiry) && expiry-now < 2*length {
			v.denial = record{expiry, body}
		}
		return !r.Bad && len(r.Rest) == 0
	}
	for i := range limits {
		if bytes.HasPrefix(body, limits[i].id) {
			r.Rest = body[len(limits[i].id):]
			v.states[i] = limits[i].ReadState(&r)
			return !r.Bad && len(r.Rest) == 0
		}
	}
	if expiry+foreignSlack > now {
		v.foreign = append(v.foreign, record{expiry, body})
	}
	return true
}
