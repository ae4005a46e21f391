package core

// more returns how long it takes, without further hits, until remaining grows:
// left is what remaining has returned, and reset what the method of that name
// has. 0 if nothing is missing.
func (m *meter) more(w []uint64, now, left, reset int64) int64 {
	switch {
	case m.quota == 0 || left >= m.capacity:
		return 0
	case left+1 == m.capacity:
		return reset
	default:
		return m.wait(w, now, left+1)
	}
}
