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

// room returns the words of a limit's state with room for a charge of cost. m is the limit's meter,
// or the one with the quota of the charge.
func (t *table) room(slot []uint64, limit int, m *meter.Meter, cost int64) []uint64 {
	state := t.state(slot, limit)
	room := m.Room(state, cost)
	if len(room) > len(state) {
		ref := &slot[t.layout.offsets[limit]]
		t.blocks.release(*ref)
		*ref = t.blocks.keep(room)
	}
	return room
}

func (t *table) expired(slot []uint64, now int64) bool {
	for i := range t.layout.meters {
		if t.layout.meters[i].Expiry(t.state(slot, i)) > now {
			return false
		}
	}
	return true
}

// trim frees the blocks of blank states. The key stays for another limit of its rule.
func (t *table) trim(slot []uint64, now int64) {
	if t.blocks == nil {
		return
	}
	for i := range t.layout.meters {
		m, ref := &t.layout.meters[i], &slot[t.layout.offsets[i]]
		if m.Grows() && *ref != 0 && m.Expiry(t.blocks.get(*ref)) <= now {
			t.blocks.release(*ref)
			*ref = 0
		}
	}
}

// expiredWeight is the weight of an expired key, below that of any other.
const expiredWeight = -1

// weigh returns how much would be lost if the key of a slot were evicted. A key is denied if one of
// its limits has no hit left; its weight is then the time until all of them have one. The weight of
// another key is the largest share that it has used of a limit, in 1/2^20.
func (t *table) weigh(slot []uint64, now int64) (denied bool, weight int64) {
	var share, wait int64
	expired := true
	for i := range t.layout.meters {
		m, w := &t.layout.meters[i], t.state(slot, i)
		var r meter.Result
		m.Decide(&r, w, now, 1)
		expired = expired && m.Expiry(w) <= now
		if !r.Allowed {
			denied = true
			m.Report(&r, w, now, 1)
			wait = max(wait, r.RetryAfter.Microseconds())
		} else {
			used, _ := meter.MulDiv(m.Capacity-r.Remaining, 1<<20, m.Capacity)
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

// blocks holds the states that have no fixed size. A slot refers to its state by a number: 0 is no
// state.
type blocks struct {
	states [][]uint64 // of the number n at n-1; nil: the number is free
	free   []uint32   // numbers
}

// keep returns a number for a state.
func (b *blocks) keep(state []uint64) uint64 {
	if last := len(b.free) - 1; last >= 0 {
		number := b.free[last]
		b.free = b.free[:last]
		b.states[number-1] = state
		return uint64(number)
	}
	b.states = append(b.states, state)
	return uint64(len(b.states))
}

// get returns a state, nil for the number 0.
func (b *blocks) get(number uint64) []uint64 {
	if number == 0 {
		return nil
	}
	return b.states[number-1]
}

func (b *blocks) release(number uint64) {
	if number == 0 {
		return
	}
	b.states[number-1] = nil
	if b.free = append(b.free, uint32(number)); len(b.free) == len(b.states) {
		*b = blocks{}
	}
}
