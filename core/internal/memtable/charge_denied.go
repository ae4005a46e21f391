package memtable

import "github.com/floodgate-go/floodgate/internal/meter"

// CountsDenied reports whether a limit of the rule counts denied hits.
func (p *Place) CountsDenied() bool { return p.layout.denied }

// ChargeDenied charges a cost to a limit that has been judged and has denied it, if the
// limit counts denied hits.
func (p *Place) ChargeDenied(limit int, quota, now, cost int64) {
	var room meter.Meter
	m, _ := p.meter(limit, quota, &room)
	if m.CountsDenied() {
		m.Charge(p.room(limit, m, cost), now, cost)
	}
}
