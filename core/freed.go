package core

// freed is called after the leases of these items have ended in this process. The items
// have Rule and Key, and are the caller's. The head of the line of each key asks the store
// at once.
func (l *Limiter) freed(s *snapshot, items []Item) {
	if !l.lines.free() {
		return
	}
	var room [128]byte
	for i := range items {
		l.lines.freed(lineName(room[:0], s.rules[items[i].Rule].Name, items[i].Key))
	}
}

// free notes that leases have ended, and returns whether a request may wait for them.
func (q *lines) free() bool {
	q.frees.Add(1)
	return q.waiting.Load() > 0
}

// freed makes the heads of the lines of this name ask the store at once.
func (q *lines) freed(name []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for l := q.of[string(name)]; l != nil; l = l.other {
		l.seen = l.seen[:0]
		l.head.call()
	}
}
