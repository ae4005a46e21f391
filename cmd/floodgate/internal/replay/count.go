package replay

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// tally has a value for each key, for the first max keys. It drops the values of later keys.
type tally[V any] struct {
	max    int
	values map[string]*V
	missed int64 // how often at was called for a later key
}

func newTally[V any](most int) *tally[V] { return &tally[V]{max: most, values: map[string]*V{}} }

// at returns the value of a key.
func (t *tally[V]) at(key string) *V {
	v := t.values[key]
	if v != nil {
		return v
	}
	v = new(V)
	if len(t.values) < t.max {
		t.values[key] = v
	} else {
		t.missed++
	}
	return v
}

// listed is how many keys, routes and clients a report lists, each.
const listed = 20

// top returns the keys of the largest values, in order.
func (t *tally[V]) top(by func(*V) int64) []string {
	keys := slices.SortedFunc(maps.Keys(t.values), func(a, b string) int {
		return cmp.Or(cmp.Compare(by(t.values[b]), by(t.values[a])), cmp.Compare(a, b))
	})
	keys = keys[:min(listed, len(keys))]
	return slices.DeleteFunc(keys, func(key string) bool { return by(t.values[key]) == 0 })
}

// keyCount counts the results of the requests of one key.
type keyCount struct {
	requests, denied int64
}

// countingStore counts the takes of a store by rule and key.
type countingStore struct {
	core.Store
	keys *tally[keyCount]
}

// Open implements [core.Store].
func (s *countingStore) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := s.Store.Open(limiter, rules)
	return &countingCounters{c, s.keys, rules}, err
}

const separator = "\x00"

type countingCounters struct {
	core.Counters
	keys  *tally[keyCount]
	rules []core.StoreRule
}

// Do implements [core.Counters].
func (c *countingCounters) Do(ctx context.Context, batch *core.Batch) error {
	err := c.Counters.Do(ctx, batch)
	// A take of the same request follows a peek that allows it, but not one that denies it.
	if err != nil || batch.Op != core.OpTake && (batch.Op != core.OpPeek || batch.Allowed) {
		return err
	}
	for i := range batch.Items {
		item := &batch.Items[i]
		count := c.keys.at(c.rules[item.Rule].Name + separator + string(item.Key))
		count.requests++
		if slices.ContainsFunc(item.Results, func(r core.Result) bool { return !r.Allowed }) {
			count.denied++
		}
	}
	return nil
}

// maxPoints is the most points of a series: the minutes of a day. If a log is longer, each
// two points become one.
const maxPoints = 1440

// at returns the point of a time. Times before the first are the first one's.
func (s *Series) at(t time.Time) *Point {
	if s.Points == nil {
		s.Width = time.Minute
		s.Start = t.Truncate(s.Width)
	}
	for t.Sub(s.Start)/s.Width >= maxPoints {
		s.halve()
	}
	i := max(0, int(t.Sub(s.Start)/s.Width))
	for len(s.Points) <= i {
		s.Points = append(s.Points, Point{})
	}
	return &s.Points[i]
}

func (s *Series) halve() {
	s.Width *= 2
	half := make([]Point, (len(s.Points)+1)/2)
	for i, p := range s.Points {
		to := &half[i/2]
		to.Allowed += p.Allowed
		to.Denied += p.Denied
		to.DryRunDenied += p.DryRunDenied
	}
	s.Points = half
}
