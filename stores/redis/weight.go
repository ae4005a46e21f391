package redisstore

import (
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// callWeight is how many microseconds of the script's time a call takes beside
// those for its items.
const callWeight = 1

// weightOf returns how many microseconds of the script's time a key of a rule with
// these limits takes, roughly, if much is stored. It keeps decisions that take long
// from being sent together with many others.
func weightOf(rule []core.Limit) int {
	weight := 2
	for _, l := range rule {
		switch {
		case l.Algorithm == core.SlidingLog: // of each hit, the time is read
			m := meter.New(limits.Of(l))
			weight += 20 + weightOfHits(&m)
		case l.Algorithm == core.Leases:
			weight += 20 + int(l.Quota/20)
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

// weightOfHits returns the part of the weight that depends on the quota.
func weightOfHits(m *meter.Meter) int {
	if m.Algorithm() != meter.SlidingLog {
		return 0
	}
	return int(m.Quota() / 10)
}
