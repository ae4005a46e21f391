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

// Bind implements [core.Store].
func (s *countingStore) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.Store.Bind(limiter, rules)
	if err != nil {
		return nil, err
	}
	counting := &countingBound{Bound: b, keys: s.keys}
	for _, r := range rules {
		counting.prefixes = append(counting.prefixes, r.Name+separator)
	}
	return counting, nil
}

const separator = "\x00"

type countingBound struct {
	core.Bound
	keys     *tally[keyCount]
	prefixes []string // of each rule
	buffer   []byte
}

// Take implements [core.Bound].
func (b *countingBound) Take(ctx context.Context, batch *core.Batch) error {
	err := b.Bound.Take(ctx, batch)
	// A peek that allows is followed by a take of the same request; one that denies is not.
	if err != nil || batch.Peek && batch.Allowed {
		return err
	}
	for i := range batch.Items {
		item := &batch.Items[i]
		b.buffer = append(append(b.buffer[:0], b.prefixes[item.Rule]...), item.Key...)
		count := b.keys.at(b.buffer)
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
