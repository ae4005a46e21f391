package memtable

import "slices"

// adopt changes the table to a newer layout of its rule. The states of limits
// that are in both stay.
func (t *table) adopt(l *layout) {
	if slices.Equal(t.layout.ids, l.ids) {
		t.layout = l
		t.forgetAllDenied()
		return
	}
	old := *t
	*t = table{layout: l, used: old.used, blocks: old.blocks}
	t.needBlocks()
	t.allocate(old.homes)
	dropped := make([]bool, len(old.layout.ids))
	from := make([]int, len(l.ids))
	for i := range dropped {
		dropped[i] = old.layout.meters[i].Grows() && !slices.Contains(l.ids, old.layout.ids[i])
	}
	for i, id := range l.ids {
		from[i] = slices.Index(old.layout.ids, id)
	}
	t.fill(&old, func(to, slot []uint64) {
		copy(to, slot[:slotHeader])
		for i, j := range from {
			if j >= 0 {
				copy(to[l.offsets[i]:], slot[old.layout.offsets[j]:][:l.meters[i].FixedWords()])
			}
		}
		for i, drop := range dropped {
			if drop {
				t.blocks.release(slot[old.layout.offsets[i]])
			}
		}
	})
	t.forgetAllDenied()
}

// forgetAllDenied is forgetDenied for all slots: other quotas have other waits.
func (t *table) forgetAllDenied() {
	if t.blocks == nil {
		return
	}
	for i := range t.slots {
		t.forgetDenied(t.slot(i))
	}
}
