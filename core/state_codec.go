package core

import (
	"encoding/binary"
	"math"
	"time"
)

// A stored value holds the states of the limits of one key of one rule, for
// stores that keep bytes. Programs that share a store may have different limits
// under one name: each writes its own states, and keeps those of the others as
// they are until they expire.
//
//	value  = version record*
//	record = length expiry kind body
//
// The version is one byte. The others are variable-length integers
// (encoding/binary): the bytes that follow in the record, the time from which
// the record means the same as none (signed microseconds since the Unix epoch),
// and the kind, algorithm × 2 + 1 if windows are aligned. The body of a limit is
// its window, its precision and its state.
//
// Every later version of this format must keep records of this shape if it
// keeps the version: records of unknown kinds are kept like those of unknown
// limits.
const stateVersion = 2

// newestVersion is the last version byte that a later format may have. A value
// with one of them is never replaced: it has the counters of a newer program.
const newestVersion = 15

// kindUsedUp is the kind of a record that denies the key until it expires. Its
// body is the length of that time in microseconds. It takes the place of a value
// that could not be read: see DenyUnreadable.
const kindUsedUp = 126

// What a value may hold of others. Of more, those that expire first are dropped.
const (
	maxForeign      = 32
	maxForeignBytes = 256 << 10
)

// No program writes a longer value than maxValue, which covers what it keeps of
// others and what another program may have of its own, and maxState for each
// limit of the rule. A longer value is somebody else's, and is not read.
const (
	maxValue = 1 << 20
	maxState = 128 << 10
)

// foreignSlack is how long a foreign record is kept after it has expired, for
// the program that wrote it may have a clock that is late.
const foreignSlack = time.Minute

// readability is what has become of reading a value.
type readability uint8

const (
	readable   readability = iota
	unreadable             // it is not ours, or has been damaged
	newer                  // it has been written by a later version
)

// stored is a value that has been read.
type stored struct {
	states  [][]uint64 // of the rule's limits, in order
	foreign []foreignState
	usedUp  int64 // the end of the time for which the key is denied, 0 for none
	is      readability
}

// foreignState is a record that this rule has no limit for.
type foreignState struct {
	expiry int64
	record []byte // its length included
}

// encode returns the value at now, and when the last of its records expires.
func (v *stored) encode(ids []identity, meters []meter, now int64) (value []byte, expiry int64) {
	value, expiry = []byte{stateVersion}, now
	var body []byte
	for i, id := range ids {
		end := meters[i].expiry(v.states[i])
		if end <= now {
			continue
		}
		body = appendState(appendIdentity(body[:0], id), &meters[i], v.states[i])
		value, expiry = appendRecord(value, end, body), max(expiry, end)
	}
	for _, f := range v.kept(now) {
		value, expiry = append(value, f.record...), max(expiry, f.expiry)
	}
	return value, expiry
}

func appendRecord(dst []byte, expiry int64, body []byte) []byte {
	var buf [binary.MaxVarintLen64]byte
	end := binary.AppendVarint(buf[:0], expiry)
	dst = binary.AppendUvarint(dst, uint64(len(end)+len(body)))
	return append(append(dst, end...), body...)
}

// usedUpRecord returns a record that denies its key for so long.
func usedUpRecord(now, length int64) foreignState {
	body := binary.AppendUvarint([]byte{kindUsedUp}, uint64(length))
	return foreignState{now + length, appendRecord(nil, now+length, body)}
}

func appendIdentity(dst []byte, id identity) []byte {
	kind := uint64(id.algorithm) << 1
	if id.aligned {
		kind |= 1
	}
	dst = binary.AppendUvarint(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(id.window.Microseconds()))
	return binary.AppendUvarint(dst, uint64(id.precision.Microseconds()))
}

// decodeStored reads a value. The limits that it does not have get the state of
// a key never seen, and so do all limits if any part of it is malformed: a value
// that somebody else wrote, or a part of one, decides on nobody's quota.
func decodeStored(value []byte, ids []identity, meters []meter, now int64) *stored {
	v := &stored{states: make([][]uint64, len(ids))}
	r := recordReader{rest: value}
	switch version := r.byte(); {
	case r.bad, version < stateVersion, version > newestVersion, len(value) > maxValue+maxState*len(ids):
		v.is = unreadable
	case version > stateVersion:
		v.is = newer
	default:
		for len(r.rest) > 0 && !r.bad {
			v.record(&r, ids, meters, now)
		}
		if r.bad {
			*v = stored{states: make([][]uint64, len(ids)), is: unreadable}
		}
	}
	for i := range v.states {
		if v.states[i] == nil && !meters[i].grows() {
			v.states[i] = make([]uint64, meters[i].fixedWords())
		}
	}
	return v
}

// record reads one record.
func (v *stored) record(r *recordReader, ids []identity, meters []meter, now int64) {
	start := r.rest
	length := r.uvarint(uint64(len(r.rest)))
	if r.bad || length > uint64(len(r.rest)) {
		r.bad = true
		return
	}
	whole := start[:len(start)-len(r.rest)+int(length)]
	in := recordReader{rest: r.rest[:length]}
	r.rest = r.rest[length:]
	expiry, kind := in.time(), in.uvarint(math.MaxUint64)
	if in.bad {
		r.bad = true
		return
	}
	if kind == kindUsedUp {
		length := int64(in.uvarint(uint64(MaxWindow.Microseconds())))
		r.bad = in.bad || len(in.rest) > 0
		// Further ahead, it is the time of a clock that has been set back.
		if expiry > now && expiry-now < 2*length {
			v.usedUp = max(v.usedUp, expiry)
			v.foreign = append(v.foreign, foreignState{expiry, whole})
		}
		return
	}
	if i := in.limit(kind, ids); i >= 0 && !in.bad {
		v.states[i] = in.state(&meters[i])
		r.bad = in.bad || len(in.rest) > 0
		return
	}
	if expiry+foreignSlack.Microseconds() > now {
		v.foreign = append(v.foreign, foreignState{expiry, whole})
	}
}

// limit reads the rest of the identity that follows the kind, and returns which
// of the rule's limits has it, -1 for none.
func (r *recordReader) limit(kind uint64, ids []identity) int {
	for i, id := range ids {
		var buf [3 * binary.MaxVarintLen64]byte
		want := appendIdentity(buf[:0], id)
		if got, n := binary.Uvarint(want); got != kind {
			continue
		} else if want = want[n:]; len(r.rest) >= len(want) && string(r.rest[:len(want)]) == string(want) {
			r.rest = r.rest[len(want):]
			return i
		}
	}
	return -1
}
