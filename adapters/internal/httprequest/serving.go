package httprequest

import (
	"net/http"
	"reflect"
	"sync"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
)

// Serving has the visits of the requests whose handlers are running. A framework's own
// store of values would allocate a map for each request, so that frameworks without a
// cheaper store use a Serving. It may be used concurrently.
//
// A request is recognised by the map of its header. Middlewares that replace the request,
// its context, its URL or the response keep this map. The map stays in memory as long as
// the Serving has the request, so that no other request has a map at the same address.
//
// A program may pass one request to an application several times, also at the same time.
// These passages have different contexts of the framework. If a middleware has put its
// own context around the framework's, the context is not known: callers pass nil.
type Serving struct {
	shards [shards]shard
}

const (
	shards  = 64
	maxFree = 64 // passages that a shard keeps for later requests
)

type shard struct {
	mu   sync.Mutex
	of   map[uintptr]*Passage // the last one of a request
	free []*Passage
	_    [24]byte // so that two shards do not share a cache line
}

// Passage is the way of a request through the handlers behind the first limiter. It is
// reused for other requests after these handlers have returned. Its shard guards it.
type Passage struct {
	shard   *shard
	header  http.Header
	context any      // the framework's, or nil
	visits  []*visit // the first used are of this request
	used    int
	before  *Passage // another one of the same request
}

// visit is a Visit and its Origin.
type visit struct {
	mounting.Visit
	origin mounting.Origin
}

func (s *Serving) find(r *http.Request) (*shard, uintptr) {
	address := reflect.ValueOf(r.Header).Pointer()
	return &s.shards[uint64(address)*0x9e3779b97f4a7c15>>58], address //nolint:gosec // the upper six bits are an index of shards
}

// Seen returns a copy of the last visit of the place's checker to a request, or nil if
// there is none.
func (s *Serving) Seen(r *http.Request, context any, place *mounting.Place) *mounting.Visit {
	shard, address := s.find(r)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	p := shard.of[address].passage(context)
	if p == nil {
		return nil
	}
	v := p.last().Of(place)
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
	shard, address := s.find(r)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	p, inner := shard.of[address].passage(context), true
	if p == nil {
		p, inner = shard.begin(address, r.Header, context), false
	}
	p.add(place, d, origin)
	if inner {
		return nil // the first limiter ends the passage
	}
	return p
}

// passage returns the passage among p and the ones before it that a context belongs to,
// or nil if there is none.
func (p *Passage) passage(context any) *Passage {
	for p != nil && p.context != context && p.context != nil && context != nil {
		p = p.before
	}
	return p
}

func (s *shard) begin(address uintptr, header http.Header, context any) *Passage {
	var p *Passage
	if n := len(s.free); n > 0 {
		p, s.free = s.free[n-1], s.free[:n-1]
	} else {
		p = &Passage{shard: s}
	}
	if s.of == nil {
		s.of = map[uintptr]*Passage{}
	}
	p.header, p.context, p.before = header, context, s.of[address]
	s.of[address] = p
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
	s, address := p.shard, reflect.ValueOf(p.header).Pointer()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch last := s.of[address]; {
	case last != p:
		for last.before != p {
			last = last.before
		}
		last.before = p.before
	case p.before != nil:
		s.of[address] = p.before
	default:
		delete(s.of, address)
	}
	for _, v := range p.visits[:p.used] {
		v.Visit = mounting.Visit{} // a decision may refer to much
	}
	p.header, p.context, p.before, p.used = nil, nil, nil, 0
	if len(s.free) < maxFree {
		s.free = append(s.free, p)
	}
}

// Last returns the last decision on a request: see mounting.Visit.Last. r may be nil.
func (s *Serving) Last(r *http.Request, context any) (d core.Decision, found bool) {
	if r == nil || r.Header == nil {
		return d, false
	}
	shard, address := s.find(r)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return visitsOf(shard.of[address], context).Last()
}

// All returns the decisions on a request: see mounting.Visit.All. r may be nil.
func (s *Serving) All(r *http.Request, context any) []core.Decision {
	if r == nil || r.Header == nil {
		return nil
	}
	shard, address := s.find(r)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return visitsOf(shard.of[address], context).All()
}

// visitsOf returns the last visit of a context's passage. A copy of a context has the
// request's last passage.
func visitsOf(last *Passage, context any) *mounting.Visit {
	for p := last; p != nil; p = p.before {
		if p.context == context {
			return p.last()
		}
	}
	if last == nil {
		return nil
	}
	return last.last()
}
