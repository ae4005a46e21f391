package redisstore

import "github.com/floodgate-go/floodgate/internal/meter"

// spreadText returns the limits of a rule as the script reads them for the key of a
// stored name. texts has them for no key.
func (r *boundRule) spreadText(name string, texts any) any {
	if !r.spread {
		return texts
	}
	b, share := []byte(texts.(string)), meter.Share(name)
	at := 0 // where the limit begins
	for i := range r.meters {
		m := &r.meters[i]
		if m.Spreads() {
			copy(b[at+textPrecision:], appendUint48(nil, m.ShiftOf(share)))
		}
		at += textLength(m)
	}
	return string(b)
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
