package meter

import (
	"hash/fnv"
	"time"
)

// The largest numbers that a state may hold. Package core returns an error for
// limits that could exceed them.
const (
	MaxCount    = 1<<31 - 1 // hits in a window, and the quota
	MaxLogCount = 10_000    // hits in a sliding log
)

// Limit is a limit in the units of this package. Package core checks the values
// and converts its own Limit to this one.
type Limit struct {
	Algorithm Algorithm
	Aligned   bool // windows begin at multiples of Window since the Unix epoch
	Quota     int64
	Capacity  int64          // the most hits at once: the burst of a TokenBucket, else Quota
	Window    int64          // microseconds
	Precision int64          // of a BucketedWindow: the length of a bucket in microseconds
	Waits     Waits          // of a Lockout
	Zone      *time.Location // of a Calendar, whose Window is Day, Week or Month
}

// Identity tells the counters of one key of one rule apart. The quota, the burst and
// the waits of a lockout are not part of it: changing them keeps the count.
type Identity struct {
	Algorithm         Algorithm
	Aligned           bool
	Window, Precision int64  // microseconds
	Zone              string // the name of a Calendar's time zone
}

// Identity returns the limit's identity.
func (l Limit) Identity() Identity {
	id := Identity{Algorithm: l.Algorithm, Aligned: l.Aligned, Window: l.Window, Precision: l.Precision}
	if l.Algorithm == Calendar {
		id.Zone = l.Zone.String()
	}
	return id
}

// Detail returns what stored states and the Redis script have for the precision:
// the precision, or 48 bits of a hash of a Calendar's zone. They never change.
func (id Identity) Detail() int64 {
	if id.Algorithm != Calendar {
		return id.Precision
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id.Zone))
	return int64(h.Sum64() >> 16)
}

// Kind returns the byte that names the algorithm and the alignment in stored
// states and to the Redis script: the wire number × 2, + 1 if aligned.
func (id Identity) Kind() uint8 {
	kind := id.Algorithm.Wire() << 1
	if id.Aligned {
		kind |= 1
	}
	return kind
}

// FromCore converts a core.Limit, which must be valid, for the stores. Package core sets it,
// because this package cannot import core.
var FromCore func(limit any) Limit
