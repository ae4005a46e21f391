package redisstore

import (
	"encoding/binary"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// meterOf returns the meter of a limit with the quota of an item, and whether it has none.
func (r *counterRule) meterOf(it *core.Item, limit int) (m *meter.Meter, unlimited bool) {
	m = &r.meters[limit]
	if it.Quotas == nil || it.Quotas[limit] == m.Quota() {
		return m, false
	}
	return m.For(it.Quotas[limit], new(meter.Meter))
}

// textsOf returns the limits of an item as the script reads them, with the item's quotas, and
// how many microseconds the script probably needs for it. texts has the limits with their own
// quotas.
func (r *counterRule) textsOf(it *core.Item, texts any) (of any, weight int) {
	var b []byte
	le, weight := binary.LittleEndian, r.weight
	for i := range it.Quotas {
		own := &r.meters[i]
		m, unlimited := r.meterOf(it, i)
		if m == own && !unlimited {
			continue
		}
		if b == nil {
			b = []byte(texts.(string))
		}
		limit := b[textHead+i*textLimit:]
		le.PutUint32(limit[textQuota:], uint32(m.Quota()))
		le.PutUint32(limit[textCapacity:], uint32(m.Capacity()))
		if unlimited {
			limit[textUnlimited] = 1
		}
		weight += weightOf(m) - weightOf(own)
	}
	if b == nil {
		return texts, weight
	}
	return string(b), weight
}

// callWeight is how many microseconds of the script's time a call takes beside
// those for its items, and itemWeight an item beside those for its limits.
const callWeight, itemWeight = 1, 2

// weightOf returns how many microseconds of the script's time a limit takes, roughly, if much
// is stored. It keeps decisions that take long from being sent together with many others.
func weightOf(m *meter.Meter) int { return 1 + int(m.MostBytes()/64) }
