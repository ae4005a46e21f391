package synced

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Increment adds value hits to a key's current window and returns the sliding
// rate after that: the hits of the window, plus the hits of the previous window
// multiplied by the part of it that a window ending now still covers. value is
// from 0 to [core.MaxQuota]. window is one of Config.Windows; windows begin at multiples of their
// length since the Unix epoch. Keys of Increment are separate from those of limiters.
//
// The error wraps [core.ErrConfig] if value or window is another one, and [core.ErrClosed] after
// Close. With Interval 0 it can also be the backend's.
func (s *Store) Increment(ctx context.Context, key string, window time.Duration, value int64) (float64, error) {
	if value < 0 || value > core.MaxQuota {
		return 0, fmt.Errorf("%w: value: %d: must be from 0 to %d", core.ErrConfig, value, int64(core.MaxQuota))
	}
	return s.rate(ctx, key, window, value, 0)
}

// Rate returns what Increment would return after diff more hits, and adds none. diff may be
// negative: the hits of the window are 0 or more all the same. After a call, the key takes part in
// the next exchanges, so that the next call knows the hits of other processes.
func (s *Store) Rate(ctx context.Context, key string, window time.Duration, diff int64) (float64, error) {
	return s.rate(ctx, key, window, 0, diff)
}

// rate adds value hits and returns the rate after diff more.
func (s *Store) rate(ctx context.Context, key string, window time.Duration, value, diff int64) (float64, error) {
	c, rule := s.rates, slices.Index(s.config.Windows, window)
	switch {
	case rule < 0:
		return 0, fmt.Errorf("%w: window: %v: is not in Config.Windows", core.ErrConfig, window)
	case s.closed.Load():
		return 0, errClosed
	}
	now, items := s.now(), []core.Item{{Rule: rule, Key: []byte(key)}}
	var places []place
	var err error
	switch {
	case s.config.Interval != 0:
		places = c.places(nil, items)
		if err = c.lock(places, now, value > 0); err == nil {
			defer c.unlock(places)
			places[0].entry.current.diff += value
		}
	case value > 0:
		places = c.emptyPlaces(items, now)
		places[0].entry.current.diff = value
		err = c.push(ctx, places)
	default:
		places = c.emptyPlaces(items, now)
		err = s.read(ctx, places[0].entry)
	}
	if err != nil {
		return 0, err
	}
	e := places[0].entry
	weight := places[0].limit.windows.Weight(now)
	return max(0, float64(e.current.count())+float64(diff)) + float64(e.previous.count())*weight, nil
}

// read reads the totals of an entry's windows.
func (s *Store) read(ctx context.Context, e *entry) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	for _, start := range [2]int64{e.start, e.start - e.window} {
		d := e.diff(start)
		total, err := s.backend.Window(ctx, s.config.Namespace, d.Key, d.Start, d.Window)
		if err != nil {
			return fmt.Errorf("synced: %w", err)
		}
		e.at(start).known = total
	}
	return nil
}
