package replay

import (
	"context"

	"github.com/floodgate-go/floodgate/core"
)

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
