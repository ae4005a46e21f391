// Package meter is the arithmetic of the rate limiting algorithms: what a limit
// allows, what it charges, how long a caller waits. It has no lock and no I/O. The
// in-process store, the stores that compare and swap, and synced use it. The
// script of stores/redis has a twin of each algorithm.
//
// Each algorithm has a file of its own, with a type that implements arithmetic:
//
//	append      the state's bytes in a stored value; read reads them
//	advance     bring the state to the time of a decision, and drop what has left the window
//	allows      whether a cost is allowed
//	charge      add hits
//	wait        how long until a cost is allowed
//	outlook     what is left, and for how long
//	refund      give hits back; grant gives back the newest ones
//	expiry      when the state means the same as none
//
// Times are microseconds since the Unix epoch and counts are whole numbers.
// Nothing is rounded except where an algorithm's formula says so.
package meter
