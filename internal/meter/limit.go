package meter

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
	Capacity  int64 // the most hits at once: the burst of a TokenBucket, else Quota
	Window    int64 // microseconds
	Precision int64 // of a BucketedWindow: the length of a bucket in microseconds
	Waits     Waits // of a Lockout
}

// Identity tells the counters of one key of one rule apart. The quota, the burst
// and the waits of a lockout are not part of it: changing them keeps the count.
type Identity struct {
	Algorithm         Algorithm
	Aligned           bool
	Window, Precision int64 // microseconds
}

// Identity returns the limit's identity.
func (l Limit) Identity() Identity {
	return Identity{l.Algorithm, l.Aligned, l.Window, l.Precision}
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

// FromCore converts a core.Limit. Package core sets it, because this package
// cannot import core. Others call internal/limits, which checks the type.
var FromCore func(limit any) Limit
