package meter

import (
	"hash/fnv"
	"time"
)

// Algorithm is one way of counting hits.
type Algorithm uint8

// The algorithms. Their numbers are in stored states and in calls of the Redis script: a number never
// changes, and no other algorithm may ever get it.
const (
	SlidingWindow Algorithm = iota
	FixedWindow
	BucketedWindow
	SlidingLog
	TokenBucket
	Lockout
	Calendar

	Algorithms // how many there are
)

// arithmetic is what an algorithm does with the words of a state. All but words, advance,
// expiry and append read a state that has been advanced to now.
type arithmetic interface {
	// advance brings the state to the time of a decision: see Decide. Hits that have left the
	// window are dropped.
	advance(m *Meter, w []uint64, now int64) (at int64, far bool)
	// left returns the largest cost that is allowed at now.
	left(m *Meter, w []uint64, now int64) int64
	// wait returns how long it takes, without further hits, until cost is allowed, which is
	// above what is left and at most the capacity.
	wait(m *Meter, w []uint64, now, cost int64) int64
	// charge, refund and grant do what the methods of Meter do, for 1 hit or more.
	charge(m *Meter, w []uint64, now, cost int64)
	refund(m *Meter, w []uint64, now, at, reset, cost int64)
	grant(m *Meter, w []uint64, now, n int64)
	expiry(m *Meter, w []uint64) int64

	// words returns the length that the state needs for a charge of cost.
	words(m *Meter, w []uint64, cost int64) int
	append(m *Meter, dst []byte, w []uint64) []byte
	read(m *Meter, r *Reader) []uint64

	worstCase(m *Meter) int64
	lifetime(m *Meter) int64
}

// algorithms lists every algorithm once.
var algorithms = [Algorithms]struct {
	name  string
	words int // of a state; 0: it grows
	arithmetic
}{
	SlidingWindow:  {"sliding_window", cellWords, &slidingWindow{}},
	FixedWindow:    {"fixed_window", cellWords, &fixedWindow{}},
	BucketedWindow: {"bucketed_window", 0, &bucketedWindow{}},
	SlidingLog:     {"sliding_log", 0, &slidingLog{}},
	TokenBucket:    {"token_bucket", cellWords, &tokenBucket{}},
	Lockout:        {"lockout", lockoutWords, &lockout{}},
	Calendar:       {"calendar_window", cellWords, &fixedWindow{}},
}

// MostFixedWords is the size of the largest state that does not grow.
const MostFixedWords = lockoutWords

// String returns the algorithm's name.
func (a Algorithm) String() string {
	if a < Algorithms {
		return algorithms[a].name
	}
	return "unknown_algorithm"
}

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
// states and to the Redis script: its number × 2, + 1 if aligned.
func (id Identity) Kind() uint8 {
	if id.Aligned {
		return uint8(id.Algorithm)*2 + 1
	}
	return uint8(id.Algorithm) * 2
}

// FromCore converts a core.Limit, which must be valid, for the stores. Package core sets it,
// because this package cannot import core.
var FromCore func(limit any) Limit
