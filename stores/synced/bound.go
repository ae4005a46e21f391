package synced

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// limit is a limit as the store counts for it.
type limit struct {
	number  uint64 // of its counters in the table
	suffix  string // of its counters in the backend
	windows meter.Windows
	quota   int64
	near    int64 // the percentage of the quota from which an exchange is forced; 0: none
}

// bound is the Counters of a Store.
type bound struct {
	*Store
	limiter string
	rules   []boundRule
}

type boundRule struct {
	name   string
	limits []limit
}

// Open implements [core.Store]. A limit that is not an aligned fixed_window or
// sliding_window is an error that wraps [core.ErrConfig]: windows that begin
// when a process first sees a key cannot be added up.
//
// Before it returns, Open fetches what other processes have counted, so that
// the first decision knows it. It waits for that at most Config.Timeout, and not
// at all if the last fetch failed; the fetch is tried again with the exchanges.
func (s *Store) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	b, err := s.bindNew(limiter, rules)
	if err != nil {
		return nil, err
	}
	s.claimName(limiter)
	if s.config.Interval > 0 {
		s.await(context.Background(), s.fetch())
	}
	return b, nil
}

func (s *Store) bindNew(limiter string, rules []core.StoreRule) (*bound, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return nil, s.errClosed()
	}
	if err := s.names.Claim(limiter); err != nil {
		return nil, fmt.Errorf("%w: Name: %q: %w", core.ErrConfig, limiter, err)
	}
	b, err := s.bind(limiter, rules)
	if err != nil {
		s.names.Unclaim(limiter)
		return nil, err
	}
	return b, nil
}

// bind is called with the store locked.
func (s *Store) bind(limiter string, rules []core.StoreRule) (*bound, error) {
	b := &bound{Store: s, limiter: limiter}
	var errs []error
	for _, r := range rules {
		rule := boundRule{name: r.Name}
		for _, l := range r.Limits {
			m, err := windowsOf(l)
			if err != nil {
				errs = append(errs, fmt.Errorf("rule %q, limit %q: %w (stores/synced counts in windows that begin at multiples of their length everywhere: set Aligned)", r.Name, l.Name, err))
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
			s.fetcher.need(l.Window)
			rule.limits = append(rule.limits, limit{s.limits[id], suffix, m, l.Quota, int64(s.config.Near)})
		}
		b.rules = append(b.rules, rule)
	}
	return b, errors.Join(errs...)
}

// windowsOf returns the meter that judges the counts of a limit's windows.
func windowsOf(l core.Limit) (meter.Windows, error) {
	if err := l.Validate(); err != nil {
		return meter.Windows{}, err
	}
	if l.Algorithm == core.Leases {
		return meter.Windows{}, fmt.Errorf("%w: Algorithm: %s: what is in flight cannot be counted apart: give the rule a limiter with another store", core.ErrConfig, l.Algorithm)
	}
	if l.Zone != nil {
		return meter.Windows{}, fmt.Errorf("%w: Zone: %v: windows of the calendar cannot be counted apart: leave Zone out", core.ErrConfig, l.Zone)
	}
	w, ok := meter.NewWindows(limits.Of(l))
	if !ok {
		return meter.Windows{}, fmt.Errorf("%w: Aligned: false: only aligned windows can be counted apart, not %v", core.ErrConfig, l)
	}
	return w, nil
}

// Do implements [core.Counters]. Unless Interval is 0, OpTake, OpPeek, OpCharge and OpRefund
// wait only for other callers, and other processes learn of the hits with the next exchange.
func (b *bound) Do(ctx context.Context, batch *core.Batch) error {
	through := b.config.Interval == 0
	switch batch.Op {
	case core.OpTake, core.OpPeek:
		if through {
			return b.takeThrough(ctx, batch)
		}
		return b.take(batch)
	case core.OpCharge:
		if through {
			return b.chargeThrough(ctx, batch)
		}
		return b.chargeAll(batch)
	case core.OpRefund:
		if through {
			return b.refundThrough(ctx, batch)
		}
		return b.refund(batch)
	case core.OpReset:
		if through {
			return b.resetThrough(ctx, batch)
		}
		return b.reset(ctx, batch)
	default:
		return fmt.Errorf("synced: %v: %w", batch.Op, core.ErrUnsupported)
	}
}

// Reopen implements [core.Counters]. The counters of windows that are new are
// fetched soon, and Reopen does not wait for that.
func (b *bound) Reopen(rules []core.StoreRule) (core.Counters, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next, err := b.bind(b.limiter, rules)
	if err != nil {
		return nil, err
	}
	if b.config.Interval > 0 {
		b.fetch()
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
// order, so that no two operations wait for each other. It returns nil if the
// store is closed.
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
	if b.closed.Load() { // looked at here, Close gathers every charge
		b.unlock(k)
		return nil
	}
	for i := range k.places {
		p := &k.places[i]
		p.start = p.limit.windows.Start(now)
		p.entry = b.table.shards[p.id.shard()].entries.get(p.id)
		if p.entry != nil {
			p.entry.roll(p.start)
			p.start = p.entry.start
			if p.entry.mark == 0 {
				b.fetcher.counts.tell(p.entry)
			}
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

func micros(n int64) time.Time { return time.UnixMicro(n) }
