package meter

// Algorithm is one way of counting hits.
type Algorithm uint8

// The algorithms.
const (
	SlidingWindow Algorithm = iota
	FixedWindow
	BucketedWindow
	SlidingLog
	TokenBucket
	Lockout
	Calendar
)

// arithmetic is what an algorithm does with the words of a state. A Meter's methods of
// the same names say what each function returns. The cost of charge and refund, and the n of
// grant, is 1 or more; that of allows and wait is at most the capacity, and the quota is not 0.
type arithmetic interface {
	words(m *Meter, w []uint64, cost int64) int
	grow(to, from []uint64)
	advance(m *Meter, w []uint64, now int64) (at int64, far bool)
	allows(m *Meter, w []uint64, now, cost int64) bool
	charge(m *Meter, w []uint64, now, cost int64)
	refund(m *Meter, w []uint64, now, at, reset, cost int64)
	grant(m *Meter, w []uint64, now, n int64)
	wait(m *Meter, w []uint64, now, cost int64) int64
	outlook(m *Meter, w []uint64, now int64) (left, reset, more int64)
	expiry(m *Meter, w []uint64) int64
	append(m *Meter, dst []byte, w []uint64) []byte
	read(m *Meter, r *Reader) []uint64
	worstCase(m *Meter) int64
	lifetime(m *Meter) int64
}

// algorithms lists every algorithm once. The wire number names it in stored
// states and to the Redis script. A wire number never changes, and no other
// algorithm may ever get it.
var algorithms = [...]struct {
	name  string
	wire  uint8
	grows bool // the state has no fixed size
	arithmetic
}{
	SlidingWindow:  {"sliding_window", 0, false, &slidingWindow{}},
	FixedWindow:    {"fixed_window", 1, false, &fixedWindow{}},
	BucketedWindow: {"bucketed_window", 2, true, &bucketedWindow{}},
	SlidingLog:     {"sliding_log", 3, true, &slidingLog{}},
	TokenBucket:    {"token_bucket", 4, false, &tokenBucket{}},
	Lockout:        {"lockout", 5, false, &lockout{}},
	Calendar:       {"calendar_window", 6, false, &fixedWindow{}},
}

// Algorithms returns all algorithms.
func Algorithms() []Algorithm {
	all := make([]Algorithm, len(algorithms))
	for i := range all {
		all[i] = Algorithm(i)
	}
	return all
}

// String returns the algorithm's name.
func (a Algorithm) String() string {
	if int(a) < len(algorithms) {
		return algorithms[a].name
	}
	return "unknown_algorithm"
}

// Wire returns the algorithm's wire number.
func (a Algorithm) Wire() uint8 { return algorithms[a].wire }
