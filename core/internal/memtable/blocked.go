package memtable

import (
	"sync"
	"sync/atomic"
)

// blocked has the keys that are denied until a time, whatever their counts. A take looks for its
// key here only if there are any.
type blocked struct {
	n     atomic.Int64
	mu    sync.Mutex
	until map[blockedKey]int64
	next  int64 // when expired blocks are next removed
}

type blockedKey struct {
	rule *rule
	hash keyHash
}

// Block denies the place's key for a time; 0 ends that. The shard need not be locked.
func (p *Place) Block(length, now int64) {
	b := &p.ts.blocked
	b.mu.Lock()
	defer b.mu.Unlock()
	key := blockedKey{p.layout.rule, p.hash}
	switch {
	case length == 0:
		delete(b.until, key)
	case p.layout.rule.retired.Load():
	default:
		if b.until == nil {
			b.until = map[blockedKey]int64{}
		}
		b.until[key] = now + length
		b.bound(p.ts.maxKeys, now)
	}
	b.n.Store(int64(len(b.until)))
}

// bound removes expired blocks, and then, if there are more than most, the one that ends first.
func (b *blocked) bound(most, now int64) {
	if int64(len(b.until)) <= most {
		return
	}
	var first blockedKey
	for key, until := range b.until {
		if until <= now {
			delete(b.until, key)
		} else if end, ok := b.until[first]; !ok || until < end {
			first = key
		}
	}
	if int64(len(b.until)) > most {
		delete(b.until, first)
	}
}

// BlockedFor returns how much longer the place's key is blocked, 0 if it is not.
func (p *Place) BlockedFor(now int64) int64 {
	b := &p.ts.blocked
	if b.n.Load() == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire(now)
	until, found := b.until[blockedKey{p.layout.rule, p.hash}]
	if !found {
		return 0
	}
	return max(0, until-now)
}

// expire removes expired blocks. It pauses a second and 10 µs for each block, so that it takes at
// most a hundredth of the time.
func (b *blocked) expire(now int64) {
	if now < b.next {
		return
	}
	b.next = now + 1_000_000 + 10*int64(len(b.until)) // microseconds
	for key, until := range b.until {
		if until <= now {
			delete(b.until, key)
		}
	}
	b.n.Store(int64(len(b.until)))
}

// unblock ends the blocks of all keys of a rule.
func (b *blocked) unblock(rule *rule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.until {
		if key.rule == rule {
			delete(b.until, key)
		}
	}
	b.n.Store(int64(len(b.until)))
}

func (b *blocked) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = nil
	b.n.Store(0)
}
