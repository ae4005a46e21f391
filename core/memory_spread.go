package core

import (
	"github.com/floodgate-go/floodgate/core/internal/memtable"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// spread tells a place by how much the windows of its key are moved, if a limit of
// the rule spreads them.
func (b *memoryBound) spread(p *memtable.Place, item *Item) {
	if b.keys.Spreads(item.Rule) {
		p.Share(meter.Share(b.rules[item.Rule].StoredKey(b.limiter, item.Key)))
	}
}
