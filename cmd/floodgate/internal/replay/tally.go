package replay

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// tally counts by key with a bounded number of keys. It is exact while they fit.
// When they do not, the rarer half is dropped, and a key that comes (again)
// after that may have been counted less than it should by at most dropped: lossy
// counting, after Manku and Motwani, "Approximate Frequency Counts over Data
// Streams" (2002).
type tally[V any] struct {
	max     int
	weight  func(*V) int64
	entries map[string]*entry[V]
	dropped int64
}

type entry[V any] struct {
	key    string
	value  V
	missed int64 // at most so much is not counted
}

func newTally[V any](most int, weight func(*V) int64) *tally[V] {
	return &tally[V]{max: most, weight: weight, entries: map[string]*entry[V]{}}
}

// at returns the value of a key. key is not kept.
func (t *tally[V]) at(key []byte) *V {
	if e := t.entries[string(key)]; e != nil {
		return &e.value
	}
	return t.add(string(key))
}

func (t *tally[V]) atText(key string) *V {
	if e := t.entries[key]; e != nil {
		return &e.value
	}
	return t.add(key)
}

func (t *tally[V]) add(key string) *V {
	if len(t.entries) >= t.max {
		t.trim()
	}
	e := &entry[V]{key: key, missed: t.dropped}
	t.entries[key] = e
	return &e.value
}

func (t *tally[V]) total(e *entry[V]) int64 { return t.weight(&e.value) + e.missed }

func (t *tally[V]) trim() {
	all := make([]int64, 0, len(t.entries))
	for _, e := range t.entries {
		all = append(all, t.total(e))
	}
	slices.Sort(all)
	t.dropped = all[len(all)/2]
	for key, e := range t.entries {
		if t.total(e) <= t.dropped {
			delete(t.entries, key)
		}
	}
}

// top returns the entries of the largest values, in order.
func (t *tally[V]) top(n int, by func(*V) int64) []*entry[V] {
	var all []*entry[V]
	for _, e := range t.entries {
		if by(&e.value) > 0 {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry[V]) int {
		return cmp.Or(cmp.Compare(by(&b.value), by(&a.value)), cmp.Compare(a.key, b.key))
	})
	return all[:min(n, len(all))]
}

// keyCount counts the results of the requests of one key.
type keyCount struct {
	requests, denied int64
}

// countingStore counts the takes of a store by key.
type countingStore struct {
	core.Store
	keys *tally[keyCount]
}

// Open implements [core.Store].
func (s *countingStore) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := s.Store.Open(limiter, rules)
	if err != nil {
		return nil, err
	}
	counting := &countingCounters{Counters: c, keys: s.keys}
	for _, r := range rules {
		counting.prefixes = append(counting.prefixes, r.Name+separator)
	}
	return counting, nil
}

const separator = "\x00"

type countingCounters struct {
	core.Counters
	keys     *tally[keyCount]
	prefixes []string // of each rule
	buffer   []byte
}

// Do implements [core.Counters].
func (c *countingCounters) Do(ctx context.Context, batch *core.Batch) error {
	err := c.Counters.Do(ctx, batch)
	// A peek that allows is followed by a take of the same request; one that denies is not.
	if err != nil || batch.Op != core.OpTake && (batch.Op != core.OpPeek || batch.Allowed) {
		return err
	}
	for i := range batch.Items {
		item := &batch.Items[i]
		c.buffer = append(append(c.buffer[:0], c.prefixes[item.Rule]...), item.Key...)
		count := c.keys.at(c.buffer)
		count.requests++
		for _, r := range item.Results {
			if !r.Allowed {
				count.denied++
				break
			}
		}
	}
	return nil
}

// maxPoints is the most points of a series; when a log is longer, two of them
// become one.
const maxPoints = 4096

// series counts over time, by the minute as long as that is not too many.
type series struct {
	start  time.Time // of the first point
	width  time.Duration
	points []Point
}

// at returns the point of a time. Times before the first are the first one's.
func (s *series) at(t time.Time) *Point {
	if s.points == nil {
		s.width = time.Minute
		s.start = t.Truncate(s.width)
	}
	i := max(0, int(t.Sub(s.start)/s.width))
	for i >= maxPoints {
		s.halve()
		i = int(t.Sub(s.start) / s.width)
	}
	for len(s.points) <= i {
		s.points = append(s.points, Point{})
	}
	return &s.points[i]
}

func (s *series) halve() {
	s.width *= 2
	half := make([]Point, (len(s.points)+1)/2)
	for i, p := range s.points {
		to := &half[i/2]
		to.Allowed += p.Allowed
		to.Denied += p.Denied
		to.DryRunDenied += p.DryRunDenied
	}
	s.points = half
}
