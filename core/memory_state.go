package core

// state returns the words of a limit's state, nil if it has none yet.
func (t *memoryTable) state(slot []uint64, limit int) []uint64 {
	off := t.layout.offset(limit)
	if m := &t.layout.meters[limit]; !m.grows() {
		end := off + m.fixedWords()
		return slot[off:end:end]
	}
	return t.blocks.get(slot[off])
}

// room returns the words of a limit's state with room for a charge of cost.
func (t *memoryTable) room(slot []uint64, limit int, cost int64) []uint64 {
	state, m := t.state(slot, limit), &t.layout.meters[limit]
	need := m.words(state, cost)
	if len(state) >= need {
		return state
	}
	ref := &slot[t.layout.offset(limit)]
	longer := t.blocks.allocate(need)
	block := t.blocks.get(longer)
	m.grow(block, state)
	t.blocks.free(*ref)
	*ref = longer
	return block
}

// blank returns whether a state means the same as none. Buckets that have been
// advanced since the last hit are blank before they expire, once they are empty.
func blank(m *meter, w []uint64, now int64) bool {
	return m.expiry(w) <= now || m.algorithm == BucketedWindow && bucketsTotal(w) == 0
}

func (t *memoryTable) expired(slot []uint64, now int64) bool {
	for i := range t.layout.meters {
		if !blank(&t.layout.meters[i], t.state(slot, i), now) {
			return false
		}
	}
	return true
}

// trim frees the blocks of limits that have nothing to remember any more, while
// another limit of the rule still does.
func (t *memoryTable) trim(slot []uint64, now int64) {
	if t.blocks == nil {
		return
	}
	for i := range t.layout.meters {
		m, ref := &t.layout.meters[i], &slot[t.layout.offset(i)]
		if m.grows() && *ref != 0 && blank(m, t.blocks.get(*ref), now) {
			t.blocks.free(*ref)
			*ref = 0
		}
	}
}

// expiredWeight is the weight of an expired key, below that of any other.
const expiredWeight = -1

// weigh returns how much would be lost if the key of a slot were evicted. A key
// is denied if one of its limits has no hit left; its weight is then the time
// until all of them have one. The weight of another key is the largest share
// that it has used of a limit, in 1/2^20.
func (t *memoryTable) weigh(slot []uint64, now int64) (denied bool, weight int64) {
	if t.expired(slot, now) {
		return false, expiredWeight
	}
	var share, wait int64
	expired := true
	for i := range t.layout.meters {
		m, w := &t.layout.meters[i], t.state(slot, i)
		m.advance(w, now)
		expired = expired && blank(m, w, now)
		left := m.remaining(w, now)
		if left == 0 {
			denied = true
			wait = max(wait, m.wait(w, now, 1))
		}
		if m.capacity > 0 {
			share = max(share, mulDiv(m.capacity-min(left, m.capacity), 1<<20, m.capacity))
		}
	}
	switch {
	case expired:
		return false, expiredWeight
	case denied:
		return true, wait
	default:
		return false, share
	}
}
