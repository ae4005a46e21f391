package synced

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Increment counts under the names of a limiter and a rule of its own.
const (
	incrementLimiter = "-increment"
	incrementRule    = "-"
)

// Increment adds value hits to a key's current window and returns the sliding
// rate after that: the hits of the window, plus the hits of the previous window
// multiplied by the part of it that a window ending now still covers. value is
// 0 or more. window is a length in whole microseconds from 1 ms to 366 days;
// windows begin at multiples of it since the Unix epoch. The first call with a
// length waits for a fetch, as Open does. Keys of Increment are separate from
// those of limiters.
//
// The error wraps [core.ErrNegativeCost] if value is negative, [core.ErrConfig]
// if window is not valid, and [core.ErrClosed] after Close. With Interval 0 it
// can also be the backend's.
func (s *Store) Increment(ctx context.Context, key string, window time.Duration, value int64) (float64, error) {
	if value < 0 {
		return 0, fmt.Errorf("synced: value %d: %w", value, core.ErrNegativeCost)
	}
	b, items, err := s.counter(ctx, key, window)
	if err != nil {
		return 0, err
	}
	now := s.now()
	items[0].Cost = value
	if s.config.Interval == 0 {
		places := b.through(items, now)
		counts, err := b.push(ctx, places, now, func(int) counts { return counts{value, 0} })
		if err != nil {
			return 0, err
		}
		return rate(&places[0], now, counts[0].current, counts[0].previous), nil
	}
	k := b.lock(items, now)
	if k == nil {
		return 0, s.errClosed()
	}
	defer b.unlock(k)
	p := &k.places[0]
	b.join(k, now, value > 0)
	if value > 0 {
		b.charge(k, p, now, value)
	}
	return p.rate(now, 0), nil
}

// Rate returns the rate that Increment would return after diff more hits, and
// adds none. diff may be negative. As with Increment, the key takes part in the
// next exchanges, so that the next call knows the hits of other processes.
func (s *Store) Rate(ctx context.Context, key string, window time.Duration, diff int64) (float64, error) {
	b, items, err := s.counter(ctx, key, window)
	if err != nil {
		return 0, err
	}
	now := s.now()
	if s.config.Interval == 0 {
		return b.rateThrough(ctx, &b.through(items, now)[0], now, diff)
	}
	k := b.lock(items, now)
	if k == nil {
		return 0, s.errClosed()
	}
	defer b.unlock(k)
	b.join(k, now, false)
	return k.places[0].rate(now, diff), nil
}

// rate returns the sliding rate of the place's counter with diff more hits.
func (p *place) rate(now, diff int64) float64 {
	if p.entry == nil {
		return rate(p, now, diff, 0)
	}
	return rate(p, max(now, p.start), p.entry.current.count()+diff, p.entry.previous.count())
}

func rate(p *place, now, current, previous int64) float64 {
	return float64(max(0, current)) + float64(max(0, previous))*p.limit.windows.Weight(now)
}

// counting is what Increment and Rate use for windows of a length.
type counting struct {
	*bound
	ready <-chan struct{} // closed when what others have counted is known
}

// counter returns a key's counter as an item of a bound of its own. The first
// time for a length of windows it waits, as Open does, for a fetch.
func (s *Store) counter(ctx context.Context, key string, window time.Duration) (*bound, []core.Item, error) {
	if s.closed.Load() {
		return nil, nil, s.errClosed()
	}
	found, ok := s.meters.Load(window)
	if !ok {
		s.mu.Lock()
		b, err := s.bind(incrementLimiter, []core.StoreRule{{Name: incrementRule, Limits: []core.Limit{{Name: "window", Quota: core.MaxQuota, Window: window, Aligned: true}}}})
		s.mu.Unlock()
		if err != nil {
			return nil, nil, err
		}
		ready := make(chan struct{})
		var made bool
		if found, made = s.meters.LoadOrStore(window, &counting{b, ready}); !made {
			if s.config.Interval > 0 {
				s.await(ctx, s.fetch())
			}
			close(ready)
		}
	}
	c := found.(*counting)
	select {
	case <-c.ready:
	default:
		s.await(ctx, c.ready)
	}
	return c.bound, []core.Item{{Key: []byte(key), Results: make([]core.Result, 1)}}, nil
}
