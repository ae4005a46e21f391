package memtable

import "github.com/floodgate-go/floodgate/internal/meter"

// Spreads reports whether a limit of a rule spreads the windows of its keys. Share must
// then be called for each place of the rule.
func (b *Binding) Spreads(rule int) bool { return b.layouts[rule].spread }

// Share sets the key's share: see meter.Share.
func (p *Place) Share(share uint64) { p.share = share }

// meter returns the meter of a limit with a quota for the key: see meter.Meter.For.
func (p *Place) meter(limit int, quota int64, room *meter.Meter) (m *meter.Meter, unlimited bool) {
	m, unlimited = p.layout.meters[limit].For(quota, room)
	return m.ForShare(p.share, room), unlimited
}
