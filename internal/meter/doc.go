// Package meter is the arithmetic of the rate limiting algorithms: what a limit
// admits, what it charges, how long a caller waits. It has no clock, no lock and
// no I/O. The in-process store, the stores that compare and swap, and synced use
// it; the Redis script stores/redis/script has a twin of each file here.
//
// Each algorithm has a file of its own. The functions of an algorithm come in
// the same order in each file, and in its twin:
//
//	state       its words in memory, and its bytes in a stored value
//	advance     bring the state to the time of a decision, and drop what has left the window
//	used        the hits that count
//	charge      add hits
//	wait        how long until a cost is admitted
//	outlook     what is left, and for how long
//	refund      give hits back
//	expiry      when the state means the same as none
//
// Times are microseconds since the Unix epoch and counts are whole numbers.
// Nothing is rounded except where an algorithm's formula says so.
package meter
