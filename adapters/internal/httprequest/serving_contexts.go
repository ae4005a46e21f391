package httprequest

import (
	"reflect"
	"sync"
	"sync/atomic"
)

// contexts finds passages by their contexts. It may be used concurrently. Nearly all
// requests have a place of their own and take no lock.
type contexts struct {
	places  [places]atomic.Pointer[Passage]
	crowded atomic.Int64 // the length of others
	mu      sync.Mutex
	others  map[uintptr]*Passage // by context: those whose place was taken
}

const (
	places    = 1 << placeBits
	placeBits = 12
)

func (c *contexts) place(context uintptr) *atomic.Pointer[Passage] {
	return &c.places[hash(context, placeBits)]
}

// find returns the passage of a context, or nil if there is none or context is nil. The
// passage may end at any time: the caller locks its shard and compares the context again.
func (c *contexts) find(context any) *Passage {
	if context == nil {
		return nil
	}
	address := reflect.ValueOf(context).Pointer()
	if p := c.place(address).Load(); p != nil && p.at.Load() == address {
		return p
	}
	if c.crowded.Load() == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.others[address]
}

// add adds a passage unless its context is nil.
func (c *contexts) add(p *Passage) {
	if p.context == nil {
		return
	}
	address := reflect.ValueOf(p.context).Pointer()
	if p.at.Load() != address { // to store takes longer
		p.at.Store(address)
	}
	if c.place(address).CompareAndSwap(nil, p) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.others == nil {
		c.others = map[uintptr]*Passage{}
	}
	c.others[address] = p
	c.crowded.Store(int64(len(c.others)))
}

// remove removes a passage unless its context is nil.
func (c *contexts) remove(p *Passage) {
	if p.context == nil {
		return
	}
	address := p.at.Load()
	if c.place(address).CompareAndSwap(p, nil) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.others[address] == p {
		delete(c.others, address)
	}
	c.crowded.Store(int64(len(c.others)))
}
