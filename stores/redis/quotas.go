package redisstore

import (
	"encoding/binary"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// limitsOf returns the limits of an item as the script reads them, and how many
// microseconds the script probably needs for it.
func (r *boundRule) limitsOf(it *core.Item) (limits any, weight int) {
	for i, q := range it.Quotas {
		if q != r.meters[i].Quota() {
			return r.withQuotas(it.Quotas)
		}
	}
	return r.limits, r.weight
}

// unlimitedBit is set in the quota of a limit that admits every cost: see
// script/arguments.lua.
const unlimitedBit = 1 << 31

// withQuotas is limitsOf with quotas in place of the limits'.
func (r *boundRule) withQuotas(quotas []int64) (limits any, weight int) {
	b, le, weight := []byte(r.limits.(string)), binary.LittleEndian, r.weight
	at := 0 // where the limit begins
	for i := range r.meters {
		var room meter.Meter
		own := &r.meters[i]
		m, unlimited := own.For(quotas[i], &room)
		switch {
		case unlimited:
			le.PutUint32(b[at+textQuota:], uint32(m.Quota())|unlimitedBit)
		case m.Algorithm() == meter.TokenBucket: // the script needs its own share, too
			le.PutUint32(b[at+textPrecision:], uint32(m.Quota())+1)
		default:
			le.PutUint32(b[at+textQuota:], uint32(m.Quota()))
			le.PutUint32(b[at+textCapacity:], uint32(m.Capacity()))
		}
		weight += weightOfHits(m) - weightOfHits(own)
		at += textLimit
		if m.Algorithm() == meter.Lockout {
			at += textLockout
		}
	}
	return string(b), weight
}
