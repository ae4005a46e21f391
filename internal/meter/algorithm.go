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
	InFlight
)

// algorithms lists every algorithm once. The wire number names it in stored
// states and to the Redis script. A wire number never changes, and no other
// algorithm may ever get it.
var algorithms = [...]struct {
	name string
	wire uint8
}{
	SlidingWindow:  {"sliding_window", 0},
	FixedWindow:    {"fixed_window", 1},
	BucketedWindow: {"bucketed_window", 2},
	SlidingLog:     {"sliding_log", 3},
	TokenBucket:    {"token_bucket", 4},
	Lockout:        {"lockout", 5},
	Calendar:       {"calendar_window", 6},
	InFlight:       {"in_flight", 7},
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
