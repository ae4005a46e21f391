package redisstore

import "github.com/floodgate-go/floodgate/core"

// callWeight is how many microseconds of the script's time a call takes beside
// those for its items.
const callWeight = 1

// weightOf returns how many microseconds of the script's time a key of a rule with
// these limits takes at the most, roughly. It need not be exact: it keeps decisions
// that take long from being joined with many others.
func weightOf(limits []core.Limit) int {
	return 2 + len(limits)
}
