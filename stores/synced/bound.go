package synced

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// limit is a limit as the store counts for it.
type limit struct {
	number uint64 // of its counters: what tells them apart in the table
	suffix string // and in the backend
	meter  core.WindowMeter
	quota  int64
	near   int64 // hits from which an exchange is forced; 0: none
}

// bound is the Bound of a Store.
type bound struct {
	*Store
	limiter string
	rules   []boundRule
}

type boundRule struct {
	name   string
	limits []limit
}

// Bind implements [core.Store]. A limit that is not an aligned fixed_window or
// sliding_window is an error that wraps [core.ErrConfig]: windows that begin
// when a process first sees a key cannot be added up.
func (s *Store) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return nil, s.errClosed()
	}
	if s.names[limiter] {
		return nil, fmt.Errorf("%w: Name: %q: this store already counts for a limiter of that name", core.ErrConfig, limiter)
	}
	b, err := s.bind(limiter, rules)
	if err != nil {
		return nil, err
	}
	s.names[limiter] = true
	return b, nil
}

// bind is called with the store locked.
func (s *Store) bind(limiter string, rules []core.StoreRule) (*bound, error) {
	b := &bound{Store: s, limiter: limiter}
	var errs []error
	for _, r := range rules {
		rule := boundRule{name: r.Name}
		for _, l := range r.Limits {
			m, err := core.NewWindowMeter(l)
			if err != nil {
				errs = append(errs, fmt.Errorf("rule %q, limit %q: %w (stores/synced counts in windows that begin at the same time everywhere: set Aligned)", r.Name, l.Name, err))
				continue
			}
			suffix := ":s"
			if l.Algorithm == core.FixedWindow {
				suffix = ":f"
			}
			id := fmt.Sprintf("%s %s %v%s", limiter, r.Name, l.Window, suffix)
			if s.limits[id] == 0 {
				s.limits[id] = uint64(len(s.limits) + 1)
			}
			s.windows[l.Window] = true
			near := int64(0)
			if s.config.Near > 0 {
				near = max(1, l.Quota*int64(s.config.Near)/100)
			}
			rule.limits = append(rule.limits, limit{s.limits[id], suffix, m, l.Quota, near})
		}
		b.rules = append(b.rules, rule)
	}
	return b, errors.Join(errs...)
}

// Rebind implements [core.Bound].
func (b *bound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next, err := b.bind(b.limiter, rules)
	if err != nil {
		return nil, err
	}
	return next, nil
}

// place is where a limit of an item counts.
type place struct {
	id    ident
	limit *limit
	item  *core.Item
	index int // among the item's results
	entry *entry
	start int64
}

type places struct {
	places []place
	shards []uint64 // those concerned, ascending, each once
}

var placesPool = sync.Pool{New: func() any { return new(places) }}

// lock finds the places of the items and locks their shards, in ascending
// order, so that no two operations wait for each other.
func (b *bound) lock(items []core.Item, now int64) *places {
	k := placesPool.Get().(*places)
	k.places, k.shards = k.places[:0], k.shards[:0]
	for i := range items {
		it := &items[i]
		limits := b.rules[it.Rule].limits
		for j := range limits {
			id := b.table.ident(limits[j].number, it.Key)
			k.places = append(k.places, place{id: id, limit: &limits[j], item: it, index: j})
			k.shards = append(k.shards, id.shard())
		}
	}
	if len(k.shards) > 1 {
		slices.Sort(k.shards)
		k.shards = slices.Compact(k.shards)
	}
	for _, s := range k.shards {
		b.table.shards[s].mu.Lock()
	}
	for i := range k.places {
		p := &k.places[i]
		p.start = p.limit.meter.Start(now)
		p.entry = b.table.shards[p.id.shard()].entries[p.id]
		if p.entry != nil {
			p.entry.roll(p.start)
			p.start = p.entry.start
		}
	}
	return k
}

func (b *bound) unlock(k *places) {
	for _, s := range k.shards {
		b.table.shards[s].mu.Unlock()
	}
	clear(k.places)
	placesPool.Put(k)
}

// judge fills in what the place's limit says of cost hits. now is not before
// the place's window.
func (p *place) judge(now, cost int64) core.Result {
	var current, previous int64
	if p.entry != nil {
		current, previous = p.entry.current.count(), p.entry.previous.count()
	}
	return p.limit.meter.Judge(max(now, p.start), current, previous, cost)
}

// Take implements [core.Bound]. With an Interval that is not 0 it waits for
// nothing but other callers.
func (b *bound) Take(ctx context.Context, batch *core.Batch) error {
	if b.closed.Load() {
		return b.errClosed()
	}
	if b.config.Interval == 0 {
		return b.takeThrough(ctx, batch)
	}
	now := b.now()
	k := b.lock(batch.Items, now)
	batch.Allowed = true
	for i := range k.places {
		p := &k.places[i]
		p.item.At = now
		r := p.judge(now, p.item.Cost)
		p.item.Results[p.index] = r
		batch.Allowed = batch.Allowed && r.Allowed
		if p.entry != nil {
			b.table.shards[p.id.shard()].mark(p.id, p.entry) // what others have counted matters to it
		}
	}
	force := false
	if batch.Allowed && !batch.Peek {
		for i := range k.places {
			p := &k.places[i]
			if p.item.Cost == 0 {
				continue
			}
			b.charge(p, now)
			r := p.judge(now, 0)
			p.item.Results[p.index] = r
			force = force || p.limit.near > 0 && p.limit.quota-r.Remaining >= p.limit.near
		}
	}
	b.unlock(k)
	if force {
		b.force()
	}
	return nil
}

// charge adds the item's cost to the place's counter.
func (b *bound) charge(p *place, now int64) {
	s := &b.table.shards[p.id.shard()]
	if p.entry == nil {
		p.entry = &entry{name: b.stored(p), window: p.limit.meter.Window(), start: p.start, fresh: true}
		b.known(p.entry)
		b.table.insert(s, p.id, p.entry, now)
	}
	p.entry.current.diff += p.item.Cost
	s.mark(p.id, p.entry)
}

// stored returns the name of the place's counter in the backend.
func (b *bound) stored(p *place) string {
	return core.StoredKey(b.limiter, b.rules[p.item.Rule].name, p.item.Key) + p.limit.suffix
}

// Refund implements [core.Bound].
func (b *bound) Refund(ctx context.Context, batch *core.Batch) error {
	return b.change(ctx, batch, func(p *place) int64 { return p.item.Cost })
}

// change takes hits out of the window that the items were charged in.
func (b *bound) change(ctx context.Context, batch *core.Batch, hits func(p *place) int64) error {
	if b.closed.Load() {
		return b.errClosed()
	}
	if b.config.Interval == 0 {
		return b.refundThrough(ctx, batch)
	}
	k := b.lock(batch.Items, b.now())
	for i := range k.places {
		p := &k.places[i]
		if p.entry == nil {
			continue
		}
		if s := p.entry.at(p.limit.meter.Start(p.item.At)); s != nil {
			s.diff -= min(hits(p), max(0, s.count()))
			b.table.shards[p.id.shard()].mark(p.id, p.entry)
		}
	}
	b.unlock(k)
	return nil
}

// Reset implements [core.Bound]. Other processes learn of it as of any other
// difference: hits that they have not yet pushed stay.
func (b *bound) Reset(ctx context.Context, batch *core.Batch) error {
	if b.closed.Load() {
		return b.errClosed()
	}
	if b.config.Interval == 0 {
		return b.resetThrough(ctx, batch)
	}
	k := b.lock(batch.Items, b.now())
	for i := range k.places {
		p := &k.places[i]
		if p.entry == nil {
			continue
		}
		for _, s := range []*slot{&p.entry.current, &p.entry.previous} {
			s.diff -= max(0, s.count())
		}
		b.table.shards[p.id.shard()].mark(p.id, p.entry)
	}
	b.unlock(k)
	return nil
}

func micros(n int64) time.Time { return time.UnixMicro(n) }
