package synced

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// The names of what Increment counts: a limiter and a rule of their own.
const (
	incrementLimiter = "-increment"
	incrementRule    = "-"
)

// Increment adds value hits to a key's window of a length, and returns the
// sliding rate after that: the window's hits, and those of the window before by
// the part of it that a window ending now still covers. value is 0 or more, a
// window whole microseconds from 1 ms to 366 days; windows begin at multiples of
// their length since the Unix epoch.
func (s *Store) Increment(ctx context.Context, key string, window time.Duration, value int64) (float64, error) {
	if value < 0 {
		return 0, fmt.Errorf("synced: value %d: %w", value, core.ErrNegativeCost)
	}
	b, items, err := s.counter(key, window)
	if err != nil {
		return 0, err
	}
	now := s.now()
	items[0].Cost = value
	if s.config.Interval == 0 {
		places := b.through(items, now)
		totals, err := b.push(ctx, places, now, func(*place) (int64, int64) { return value, 0 })
		if err != nil {
			return 0, err
		}
		return rate(&places[0], now, totals[0], totals[1]), nil
	}
	k := b.lock(items, now)
	defer b.unlock(k)
	p := &k.places[0]
	if value > 0 {
		b.charge(p, now)
	} else if p.entry == nil {
		return 0, nil
	}
	return rate(p, max(now, p.start), p.entry.current.count(), p.entry.previous.count()), nil
}

// Rate returns the rate that Increment would return after diff more hits, and
// writes nothing. diff may be negative.
func (s *Store) Rate(ctx context.Context, key string, window time.Duration, diff int64) (float64, error) {
	b, items, err := s.counter(key, window)
	if err != nil {
		return 0, err
	}
	now := s.now()
	if s.config.Interval == 0 {
		p := &b.through(items, now)[0]
		ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
		defer cancel()
		current, err := s.backend.Window(ctx, s.config.Namespace, b.stored(p), micros(p.start), window)
		if err != nil {
			return 0, fmt.Errorf("synced: %w", err)
		}
		previous, err := s.backend.Window(ctx, s.config.Namespace, b.stored(p), micros(p.start).Add(-window), window)
		if err != nil {
			return 0, fmt.Errorf("synced: %w", err)
		}
		return rate(p, now, current+diff, previous), nil
	}
	k := b.lock(items, now)
	defer b.unlock(k)
	p := &k.places[0]
	if p.entry == nil {
		return rate(p, now, diff, 0), nil
	}
	b.table.shards[p.id.shard()].mark(p.id, p.entry)
	return rate(p, max(now, p.start), p.entry.current.count()+diff, p.entry.previous.count()), nil
}

func rate(p *place, now, current, previous int64) float64 {
	return float64(max(0, current)) + float64(max(0, previous))*p.limit.meter.Weight(now)
}

// counter returns a key's counter as an item of a bound of its own.
func (s *Store) counter(key string, window time.Duration) (*bound, []core.Item, error) {
	if s.closed.Load() {
		return nil, nil, s.errClosed()
	}
	known, found := s.meters.Load(window)
	if !found {
		s.mu.Lock()
		b, err := s.bind(incrementLimiter, []core.StoreRule{{Name: incrementRule, Limits: []core.Limit{{Name: "window", Quota: core.MaxQuota, Window: window, Aligned: true}}}})
		s.mu.Unlock()
		if err != nil {
			return nil, nil, err
		}
		known, _ = s.meters.LoadOrStore(window, b)
	}
	return known.(*bound), []core.Item{{Key: []byte(key), Results: make([]core.Result, 1)}}, nil
}
