package redisstore

import (
	"encoding/binary"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// textsOf returns the limits of an item as the script reads them, and how many
// microseconds the script probably needs for it. texts has the limits with their own
// quotas.
func (r *counterRule) textsOf(it *core.Item, texts any) (of any, weight int) {
	for i, q := range it.Quotas {
		if q != r.meters[i].Quota() {
			return r.withQuotas(texts.(string), it.Quotas)
		}
	}
	return texts, r.weight
}

// unlimitedBit is set in the quota of a limit that admits every cost: see
// script/arguments.lua.
const unlimitedBit = 1 << 31

// withQuotas is textsOf with quotas in place of the limits'.
func (r *counterRule) withQuotas(texts string, quotas []int64) (of any, weight int) {
	b, le, weight := []byte(texts), binary.LittleEndian, r.weight
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
		at += textLength(m)
	}
	return string(b), weight
}

// textLength is how many bytes a limit takes in the text that the script reads.
func textLength(m *meter.Meter) int {
	switch m.Algorithm() {
	case meter.Lockout:
		return textLimit + textLockout
	case meter.Calendar:
		return textLimit + textEdges
	default:
		return textLimit
	}
}
