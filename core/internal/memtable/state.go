package memtable

import "github.com/floodgate-go/floodgate/internal/meter"

// state returns the words of a limit's state, nil if it has none yet.
func (t *table) state(slot []uint64, limit int) []uint64 {
	off := t.layout.offsets[limit]
	if m := &t.layout.meters[limit]; !m.Grows() {
		end := off + m.FixedWords()
		return slot[off:end:end]
	}
	return t.blocks.get(slot[off])
}

// room returns the words of a limit's state with room for a charge of cost. m is
// the limit's meter, or the one with the quota of the charge.
func (t *table) room(slot []uint64, limit int, m *meter.Meter, cost int64) []uint64 {
	state := t.state(slot, limit)
	need := m.Words(state, cost)
	if len(state) >= need {
		return state
	}
	ref := &slot[t.layout.offsets[limit]]
	longer := t.blocks.allocate(need)
	block := t.blocks.get(longer)
	m.Grow(block, state)
	t.blocks.release(*ref)
	*ref = longer
	return block
}

// deniedUntil returns the time until which a limit whose state grows is known to
// have no hit left, 0 if that is not known. It is kept in the slot, because a
// search for a key to evict, and the sweep, ask it of several keys at each
// insertion, and a block with many buckets is slow to load and to read. If it is
// further ahead than the limit can deny, the clock was set back, and the state
// must be asked.
func (t *table) deniedUntil(slot []uint64, limit int, now int64) int64 {
	m := &t.layout.meters[limit]
	if !m.Grows() {
		return 0
	}
	if until := int64(slot[t.layout.offsets[limit]+1]); until > now && until-now <= m.Window()+max(0, m.Precision()-1) {
		return until
	}
	return 0
}

// noteDenied notes until when a limit has no hit left; 0: not known.
func (t *table) noteDenied(slot []uint64, limit int, until int64) {
	if m := &t.layout.meters[limit]; m.Grows() {
		slot[t.layout.offsets[limit]+1] = uint64(until)
	}
}

// forgetDenied forgets what noteDenied has noted of a slot.
func (t *table) forgetDenied(slot []uint64) {
	for i := range t.layout.meters {
		t.noteDenied(slot, i, 0)
	}
}

func (t *table) expired(slot []uint64, now int64) bool {
	for i := range t.layout.meters {
		if t.deniedUntil(slot, i, now) > 0 || !t.layout.meters[i].Blank(t.state(slot, i), now) {
			return false
		}
	}
	return true
}

// trim frees the blocks of limits that have nothing to remember any more, while
// another limit of the rule still does.
func (t *table) trim(slot []uint64, now int64) {
	if t.blocks == nil {
		return
	}
	for i := range t.layout.meters {
		m, ref := &t.layout.meters[i], &slot[t.layout.offsets[i]]
		if m.Grows() && *ref != 0 && t.deniedUntil(slot, i, now) == 0 && m.Blank(t.blocks.get(*ref), now) {
			t.blocks.release(*ref)
			*ref = 0
			t.noteDenied(slot, i, 0)
		}
	}
}

// expiredWeight is the weight of an expired key, below that of any other.
const expiredWeight = -1

// weigh returns how much would be lost if the key of a slot were evicted. A key
// is denied if one of its limits has no hit left; its weight is then the time
// until all of them have one. The weight of another key is the largest share
// that it has used of a limit, in 1/2^20.
func (t *table) weigh(slot []uint64, now int64) (denied bool, weight int64) {
	if t.expired(slot, now) {
		return false, expiredWeight
	}
	var share, wait int64
	expired := true
	for i := range t.layout.meters {
		if until := t.deniedUntil(slot, i, now); until > 0 {
			denied, expired = true, false
			wait = max(wait, until-now)
			continue
		}
		m, w := &t.layout.meters[i], t.state(slot, i)
		m.Advance(w, now)
		expired = expired && m.Blank(w, now)
		left, until := m.Remaining(w, now), int64(0)
		if left == 0 {
			denied = true
			recovery := m.Wait(w, now, 1)
			wait = max(wait, recovery)
			if recovery != meter.Forever {
				until = now + recovery
			}
		}
		t.noteDenied(slot, i, until)
		if capacity := m.Capacity(); capacity > 0 {
			used, _ := meter.MulDiv(capacity-min(left, capacity), 1<<20, capacity)
			share = max(share, used)
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
