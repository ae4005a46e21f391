package core

import "github.com/floodgate-go/floodgate/core/internal/memtable"

// chargeDenied charges the cost of an item that has been judged to the limits that
// have denied it and count denied hits. It returns true if slots of the table have moved.
func chargeDenied(p *memtable.Place, k *memtable.Places, item *Item, now int64) (moved bool) {
	if item.Cost == 0 || !p.CountsDenied() {
		return false
	}
	for i := range p.Limits() {
		if !item.Results[i].Allowed {
			moved = p.Insert(k, now) || moved
			p.ChargeDenied(i, item.quota(i), now, item.Cost)
		}
	}
	return moved
}
