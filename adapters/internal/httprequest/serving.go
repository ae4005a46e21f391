package httprequest

import (
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
)

// Serving has the visits of the requests whose handlers are running. A framework's own
// store of values would allocate a map for each request, so that frameworks without a
// cheaper store use a Serving. It may be used concurrently.
//
// A request is recognised by the framework's context, and by the map of its header. A
// middleware that copies the request with its header keeps the context. A copy of the
// context has the same header. The map stays in memory as long as the Serving has the
// request, so that no other request has a map at the same address.
//
// A program may pass one request to an application several times, also at the same time.
// These passages have different contexts of the framework. If a middleware has put its
// own context around the framework's, the context is not known: callers pass nil.
type Serving struct {
	shards   [shards]shard
	contexts contexts
}

const (
	shards  = 1 << shardBits
	maxFree = 8 // passages that a shard keeps for later requests

	shardBits = 9
)

// shard has the passages of about one in 512 requests. They are few: a search looks at one
// after the other.
type shard struct {
	mu    sync.Mutex
	first *Passage // the latest
	free  *Passage
	spare int      // the number of passages in free
	_     [32]byte // so that two shards do not share a cache line
}

// Passage is the way of a request through the handlers behind the first limiter. It is
// reused for other requests after these handlers have returned. Its shard guards it.
type Passage struct {
	shard    *shard
	address  uintptr // of header
	header   http.Header
	context  any // the framework's, or nil
	contexts *contexts
	at       atomic.Uintptr // the address of the last context that is not nil; shard does not guard it
	visits   []*visit       // the first used are of this request
	used     int
	next     *Passage // in the shard
}

// visit is a Visit and its Origin.
type visit struct {
	mounting.Visit
	origin mounting.Origin
}

func (s *Serving) find(r *http.Request) (*shard, uintptr) {
	address := reflect.ValueOf(r.Header).Pointer()
	return &s.shards[hash(address, shardBits)], address
}

func hash(address uintptr, bits int) uint64 {
	return uint64(address) * 0x9e3779b97f4a7c15 >> (64 - bits)
}

// Seen returns a copy of the last visit of the place's checker to a request, or nil if
// there is none.
func (s *Serving) Seen(r *http.Request, context any, place *mounting.Place) *mounting.Visit {
	shard, _, p := s.lock(r, context)
	defer shard.mu.Unlock()
	if p != nil {
		return copyOf(p.last().Of(place))
	}
	return nil
}

// copyOf returns a copy of a visit without the visits before it.
func copyOf(v *mounting.Visit) *mounting.Visit {
	if v == nil {
		return nil
	}
	seen := visit{Visit: *v}
	if seen.Before = nil; v.Origin != nil {
		seen.origin = *v.Origin
		seen.Origin = &seen.origin
	}
	return &seen.Visit
}

// Enter adds a visit to a request. origin may be nil. The caller calls Leave with the
// result after the handlers behind the place have returned.
func (s *Serving) Enter(r *http.Request, context any, place *mounting.Place, d *core.Decision, origin *mounting.Origin) *Passage {
	if r.Header == nil { // not a server's request
		r.Header = http.Header{}
	}
	shard, address, p := s.lock(r, context)
	defer shard.mu.Unlock()
	if p != nil {
		p.add(place, d, origin)
		return nil // the first limiter ends the passage
	}
	p = shard.begin(address, r.Header, context)
	p.add(place, d, origin)
	s.contexts.add(p)
	p.contexts = &s.contexts
	return p
}

// lock locks the shard of the passage that a context belongs to, and returns the passage.
// If there is none, lock locks the shard of the request's header.
func (s *Serving) lock(r *http.Request, context any) (*shard, uintptr, *Passage) {
	own, address := s.find(r)
	own.mu.Lock()
	if p := own.passage(address, context); p != nil {
		return own, address, p
	}
	p := s.contexts.find(context)
	if p == nil {
		return own, address, nil
	}
	own.mu.Unlock() // the request has been given another header
	p.shard.mu.Lock()
	if p.context == context {
		return p.shard, address, p
	}
	p.shard.mu.Unlock() // the passage has just ended
	own.mu.Lock()
	return own, address, nil
}

// passage returns the passage that a context belongs to, or nil if there is none.
func (s *shard) passage(address uintptr, context any) *Passage {
	for p := s.first; p != nil; p = p.next {
		if p.address == address && (p.context == context || p.context == nil || context == nil) {
			return p
		}
	}
	return nil
}

func (s *shard) begin(address uintptr, header http.Header, context any) *Passage {
	p := s.free
	if p == nil {
		p = &Passage{shard: s}
	} else {
		s.free = p.next
		s.spare--
	}
	p.address, p.header, p.context, p.next = address, header, context, s.first
	s.first = p
	return p
}

func (p *Passage) add(place *mounting.Place, d *core.Decision, origin *mounting.Origin) {
	before := p.last()
	if p.used == len(p.visits) {
		p.visits = append(p.visits, new(visit))
	}
	v := p.visits[p.used]
	p.used++
	v.Place, v.Decision, v.Before = place, *d, before
	if origin != nil {
		v.origin = *origin
		v.Origin = &v.origin
	}
}

func (p *Passage) last() *mounting.Visit {
	if p.used == 0 {
		return nil
	}
	return &p.visits[p.used-1].Visit
}

// Leave ends a passage. It does nothing if p is nil.
func (p *Passage) Leave() {
	if p == nil {
		return
	}
	s := p.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	p.contexts.remove(p)
	at := &s.first
	for *at != p {
		at = &(*at).next
	}
	*at = p.next
	for _, v := range p.visits[:p.used] {
		v.Visit = mounting.Visit{} // a decision may refer to much
	}
	p.address, p.header, p.context, p.used, p.next = 0, nil, nil, 0, nil
	if s.spare < maxFree {
		p.next, s.free = s.free, p
		s.spare++
	}
}

// Last returns the last decision on a request: see mounting.Visit.Last. r may be nil.
func (s *Serving) Last(r *http.Request, context any) (d core.Decision, found bool) {
	if r == nil || r.Header == nil {
		return d, false
	}
	shard, address, p := s.lock(r, context)
	defer shard.mu.Unlock()
	return shard.visits(address, p).Last()
}

// All returns the decisions on a request: see mounting.Visit.All. r may be nil.
func (s *Serving) All(r *http.Request, context any) []core.Decision {
	if r == nil || r.Header == nil {
		return nil
	}
	shard, address, p := s.lock(r, context)
	defer shard.mu.Unlock()
	return shard.visits(address, p).All()
}

// visits returns the last visit of a passage. A copy of a context has no passage: it has the
// request's latest one.
func (s *shard) visits(address uintptr, p *Passage) *mounting.Visit {
	if p == nil {
		for p = s.first; p != nil && p.address != address; {
			p = p.next
		}
	}
	if p == nil {
		return nil
	}
	return p.last()
}
