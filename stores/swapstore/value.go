package swapstore

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// A stored value holds the states of the limits of one key of one rule, for
// stores that keep bytes. Programs that share a store may have different limits
// under one name: each writes its own states and keeps the states of others
// unchanged until they expire.
//
//	value  = version record*
//	record = length expiry kind body
//
// The version is one byte. The others are variable-length integers
// (encoding/binary). The length counts the bytes that follow in the record. The
// expiry is the time from which the record means the same as none, in signed
// microseconds since the Unix epoch. The kind is algorithm × 2, + 1 if windows
// are aligned. The body of a limit is its window, its precision and its state;
// of a limit with a Zone, a hash of the zone's name in place of the precision.
//
// A later format that keeps the version must keep records of this shape:
// records of unknown kinds are kept like those of unknown limits.
const stateVersion = 2

// newestVersion is the last version byte that a later format may have. A value
// with one of them is never replaced: it has the counters of a newer program.
const newestVersion = 15

// kindUsedUp is the kind of a record that denies the key until it expires. Its
// body is the length of that time in microseconds. Block writes it, and it replaces a value
// that could not be read: see core.Config.DenyUnreadable.
const kindUsedUp = 126

// How much of others' records a value may hold. If there are more, those that
// expire first are dropped.
const (
	maxForeign      = 32
	maxForeignBytes = 256 << 10
)

// No program writes a value longer than maxValue and maxState for each limit of
// the rule. maxValue covers the foreign records that it keeps, and the states
// of its own that another program may have. A longer value is foreign, and is
// not read.
const (
	maxValue = 1 << 20
	maxState = 128 << 10
)

// foreignSlack is how long a foreign record is kept after it has expired,
// because the clock of the program that wrote it may be late.
const foreignSlack = time.Minute

// A foreign record holds its own expiry, by the clock of the program that wrote
// it. No clock that is less than one window ahead writes a time later than
// three windows ahead of now, for the kinds whose windows are read; and no program
// one later than longestLife. A record that expires later is from a clock that was
// wrong, or damaged: its expiry is cut to that, so that no value is kept for ever.
const longestLife = int64((core.MaxRefill + core.MaxWindow) / time.Microsecond)

// foreignLife returns how long a foreign record may last from now. r is at the
// part that follows the kind.
func foreignLife(kind uint64, r meter.Reader) int64 {
	window := int64(r.Uvarint(uint64(core.MaxWindow.Microseconds())))
	if r.Bad || kind >= uint64(core.TokenBucket)<<1 {
		return longestLife
	}
	return 3 * window
}

// readability is the result of reading a value.
type readability uint8

const (
	readable   readability = iota
	unreadable             // it is foreign, or has been damaged
	newer                  // it has been written by a later version
)

// stored is a value that has been read.
type stored struct {
	states  [][]uint64 // of the rule's limits, in order
	foreign []foreignState
	usedUp  int64 // the end of the time for which the key is denied, 0 for none
	is      readability
}

// foreignState is a record of a limit that this rule does not have.
type foreignState struct {
	expiry int64
	record []byte // its length included
	usedUp bool   // the record is of kindUsedUp
}

// encode returns the value at now, and when the last of its records expires.
func (v *stored) encode(ids []meter.Identity, meters []meter.Meter, now int64) (value []byte, expiry int64) {
	value, expiry = []byte{stateVersion}, now
	var body []byte
	for i, id := range ids {
		end := meters[i].Expiry(v.states[i])
		if end <= now {
			continue
		}
		body = meters[i].AppendState(appendIdentity(body[:0], id), v.states[i])
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

// usedUpRecord returns a record that denies its key for this length of time.
func usedUpRecord(now, length int64) foreignState {
	body := binary.AppendUvarint([]byte{kindUsedUp}, uint64(length))
	return foreignState{now + length, appendRecord(nil, now+length, body), true}
}

func appendIdentity(dst []byte, id meter.Identity) []byte {
	dst = binary.AppendUvarint(dst, uint64(id.Kind()))
	dst = binary.AppendUvarint(dst, uint64(id.Window))
	return binary.AppendUvarint(dst, uint64(id.Detail()))
}

// decodeStored reads a value. A limit that has no record there gets the state
// of a key never seen. If any part of the value is malformed, all limits get
// that state: a foreign value, or a part of one, must not decide on a quota.
func decodeStored(value []byte, ids []meter.Identity, meters []meter.Meter, now int64) *stored {
	v := &stored{states: make([][]uint64, len(ids))}
	r := meter.Reader{Rest: value}
	switch version := r.Byte(); {
	case r.Bad, version < stateVersion, version > newestVersion, len(value) > maxValue+maxState*len(ids):
		v.is = unreadable
	case version > stateVersion:
		v.is = newer
	default:
		for len(r.Rest) > 0 && !r.Bad {
			v.record(&r, ids, meters, now)
		}
		if r.Bad {
			*v = stored{states: make([][]uint64, len(ids)), is: unreadable}
		}
	}
	for i := range v.states {
		if v.states[i] == nil && !meters[i].Grows() {
			v.states[i] = make([]uint64, meters[i].FixedWords())
		}
	}
	return v
}

// record reads one record.
func (v *stored) record(r *meter.Reader, ids []meter.Identity, meters []meter.Meter, now int64) {
	start := r.Rest
	length := r.Uvarint(uint64(len(r.Rest)))
	if r.Bad || length > uint64(len(r.Rest)) {
		r.Bad = true
		return
	}
	whole := start[:len(start)-len(r.Rest)+int(length)]
	in := meter.Reader{Rest: r.Rest[:length]}
	r.Rest = r.Rest[length:]
	expiry := in.Time()
	body := in.Rest
	kind := in.Uvarint(math.MaxUint64)
	if in.Bad {
		r.Bad = true
		return
	}
	if kind == kindUsedUp {
		length := int64(in.Uvarint(uint64(core.MaxWindow.Microseconds())))
		r.Bad = in.Bad || len(in.Rest) > 0
		// An expiry further ahead was written by a clock that has been set
		// back.
		if expiry > now && expiry-now < 2*length {
			v.usedUp = max(v.usedUp, expiry)
			v.foreign = append(v.foreign, foreignState{expiry, whole, true})
		}
		return
	}
	if i := limitOf(&in, kind, ids); i >= 0 && !in.Bad {
		v.states[i] = meters[i].ReadState(&in)
		r.Bad = in.Bad || len(in.Rest) > 0
		return
	}
	if expiry+foreignSlack.Microseconds() > now {
		if latest := now + foreignLife(kind, in); expiry > latest {
			expiry, whole = latest, appendRecord(nil, latest, body)
		}
		v.foreign = append(v.foreign, foreignState{expiry, whole, false})
	}
}

// limitOf reads the rest of the identity that follows the kind, and returns which
// of the rule's limits has it, -1 for none.
func limitOf(r *meter.Reader, kind uint64, ids []meter.Identity) int {
	for i, id := range ids {
		var buf [3 * binary.MaxVarintLen64]byte
		want := appendIdentity(buf[:0], id)
		if got, n := binary.Uvarint(want); got != kind {
			continue
		} else if want = want[n:]; len(r.Rest) >= len(want) && string(r.Rest[:len(want)]) == string(want) {
			r.Rest = r.Rest[len(want):]
			return i
		}
	}
	return -1
}
