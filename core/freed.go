package core

// freed is called after this process has ended leases of these items, or has given them hits
// back. The items have Rule and Key, and are the caller's. The head of the line of each key asks
// the store at once.
func (l *Limiter) freed(s *snapshot, items []Item) {
	if !l.lines.free() {
		return
	}
	var room [128]byte
	for i := range items {
		l.lines.freed(lineName(room[:0], s.rules[items[i].Rule].Name, items[i].Key))
	}
}

// freedAll is freed for all keys.
func (l *Limiter) freedAll() {
	if !l.lines.free() {
		return
	}
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	for _, first := range l.lines.of {
		first.callAll()
	}
}

// free notes that there is more room, and returns whether a request may wait for it.
func (q *lines) free() bool {
	q.frees.Add(1)
	return q.waiting.Load() > 0
}

// freed makes the heads of the lines of this name ask the store at once.
func (q *lines) freed(name []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.of[string(name)].callAll()
}

// callAll makes the heads of all lines of a key, of which l is the first, ask the store.
func (l *line) callAll() {
	for ; l != nil; l = l.other {
		l.seen = l.seen[:0]
		l.head.call()
	}
}
