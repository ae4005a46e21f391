package memtable

// blocks holds the states that have no fixed size. A slot refers to its state
// by a number: 0 is no state.
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
