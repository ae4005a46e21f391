package redisstore

import (
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// callWeight is how many microseconds of the script's time a call takes beside
// those for its items.
const callWeight = 1

// weightOf returns how many microseconds of the script's time a key of a rule with
// these limits takes, roughly, if much is stored. It keeps decisions that take long
// from being sent together with many others.
func weightOf(limits []core.Limit) int {
	weight := 2
	for _, l := range limits {
		switch {
		case l.Algorithm == core.SlidingLog: // of each hit, the time is read
			weight += 20 + int(min(l.Quota, core.MaxQuota)/10)
		case l.Algorithm == core.BucketedWindow:
			weight += 20 + int(l.Window/max(l.Precision, time.Microsecond)/20)
		case l.Algorithm == core.TokenBucket, l.Lockout != (core.Lockout{}), l.Zone != nil:
			weight += 20
		default: // the script has a short way for it
			weight++
		}
	}
	return weight
}
