//go:build race

package fiber3limit_test

// raceEnabled: the race detector makes pools drop things at random, and so
// allocations appear that are not there without it.
const raceEnabled = true
