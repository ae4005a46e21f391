package resilient

import (
	"hash/maphash"
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// asking keeps the hits for which requests are asking the store: the process
// counts them and the store does not yet. A payment of the same key must not
// take them for hits that the store has lost. asking is kept also while no key
// owes hits, because a request may begin before an outage and end after it.
type asking struct {
	rules  maphash.Seed // not keys, so that a rule and a key of one name have different hashes
	keys   maphash.Seed
	shards [64]askingShard // so that requests for different keys do not wait for each other
}

type askingShard struct {
	mu      sync.Mutex
	keys    []askedKey
	changes uint64
}

// askedKey is what is noted of one key.
type askedKey struct {
	id     uint64 // a hash of the rule and the key
	hits   askedHits
	missed int64  // hits that the store has charged, and for which hits left no room in this process: see owed.record
	change uint64 // tells two states of the same numbers apart
}

// askedHits are the hits of a key that requests are asking the store for.
type askedHits struct {
	charging int64 // perhaps not charged in this process yet
	charged  int64 // charged in this process
}

func newAsking() *asking { return &asking{rules: maphash.MakeSeed(), keys: maphash.MakeSeed()} }

// rule returns a rule's id.
func (a *asking) rule(name string) uint64 { return maphash.String(a.rules, name) }

func (a *asking) shard(rule uint64, key []byte) (s *askingShard, id uint64) {
	id = rule ^ maphash.Bytes(a.keys, key)
	return &a.shards[id%uint64(len(a.shards))], id
}

// change changes what is noted of an item's key. It also calls also, if that is
// not nil, so that no look sees one change without the other.
func (o *owed) change(it *core.Item, by askedHits, also func()) {
	s, id := o.asking.shard(o.ids[it.Rule], it.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if by != (askedHits{}) {
		i := s.change(id, by)
		if k := &s.keys[i]; k.missed > 0 {
			k.missed = o.makeUp(it, k.missed)
		}
		s.tidy(i)
	}
	if also != nil {
		also()
	}
}

func (s *askingShard) change(id uint64, by askedHits) (i int) {
	i = s.find(id)
	if i < 0 {
		i = len(s.keys)
		s.keys = append(s.keys, askedKey{id: id})
	}
	k := &s.keys[i]
	k.hits.charging += by.charging
	k.hits.charged += by.charged
	s.changes++
	k.change = s.changes
	return i
}

// tidy removes a key of which nothing is noted. Hits that it has missed are
// forgotten: the process counts as many as it can.
func (s *askingShard) tidy(i int) {
	if s.keys[i].hits == (askedHits{}) {
		last := len(s.keys) - 1
		s.keys[i] = s.keys[last]
		s.keys = s.keys[:last]
	}
}

func (s *askingShard) find(id uint64) int {
	for i := range s.keys {
		if s.keys[i].id == id {
			return i
		}
	}
	return -1
}

// seen is what count sets aside: hits that this process counts and that the
// payment of a key's debt need not charge.
type seen struct {
	askedHits
	change uint64
	known  int64 // see debt
	later  int64 // see payment
	back   int64 // see payment
}

// look returns what must be set aside for a claim's key.
func (o *owed) look(c *claim) (s seen) {
	o.asking.look(o.ids[c.index], c.name, func(k askedKey) {
		o.mu.Lock()
		defer o.mu.Unlock()
		s = seen{k.hits, k.change, c.payment.known, c.payment.later, c.payment.back}
	})
	return s
}

// look calls see with what is noted of a key.
func (a *asking) look(rule uint64, key []byte, see func(askedKey)) {
	s, id := a.shard(rule, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(id); i >= 0 {
		see(s.keys[i])
	} else {
		see(askedKey{})
	}
}

// hits returns how many hits of an item count: no counter goes beyond core.MaxQuota.
func hits(it *core.Item) int64 { return min(it.Cost, core.MaxQuota) }

// asks is what is noted of a request's hits.
type asks int

const (
	asksNothing asks = iota
	asksCharging
	asksCharged
)

// ended returns the change of the noted hits at the end of a request.
func (a asks) ended(cost int64) askedHits {
	switch a {
	case asksCharging:
		return askedHits{charging: -cost}
	case asksCharged:
		return askedHits{charged: -cost}
	}
	return askedHits{}
}

// ask notes that a request is about to charge its hits in this process, and
// then to ask the store for them. A call of decided follows, unless the process
// has failed, and at the end a call of note or answered.
func (o *owed) ask(own *mirror) {
	if own.batch.Peek {
		return
	}
	own.asks = asksCharging
	for i := range own.items {
		it := &own.items[i]
		o.change(it, askedHits{charging: hits(it)}, nil)
	}
}

// decided notes whether the process has charged the hits.
func (o *owed) decided(own *mirror) {
	switch {
	case own.asks == asksNothing:
	case !own.charged():
		o.answered(own)
	default:
		own.asks = asksCharged
		for i := range own.items {
			it := &own.items[i]
			o.change(it, askedHits{charging: -hits(it), charged: hits(it)}, nil)
		}
	}
}

// answered notes that the store has charged the hits if own.known is set.
// Otherwise it notes that the process no longer counts them.
func (o *owed) answered(own *mirror) {
	known := own.known && own.asks == asksCharged && !o.none()
	for i := range own.items {
		it := &own.items[i]
		by := own.asks.ended(hits(it))
		if known {
			o.change(it, by, func() { o.know(it) })
		} else if own.asks != asksNothing {
			o.change(it, by, nil)
		}
	}
	own.asks = asksNothing
}
