package resilient

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// owed remembers which keys were admitted in the process while the store did
// not answer, for as long as these hits count. The store does not know of the
// hits, so for such a key the counters of this process must admit a request too.
type owed struct {
	bound core.Bound
	until *atomic.Int64 // when the last of them are over, in microseconds; 0: there are none
	now   func() int64
	lives []time.Duration // of each rule's hits
}

// owedRules are the rules under which keys are remembered: a key that has a hit
// is one of them. A mark lasts a quarter longer than the hits that it stands for,
// so that it has to be made anew only now and then.
func owedRules(rules []core.StoreRule) (marks []core.StoreRule, lives []time.Duration) {
	for _, r := range rules {
		life := time.Millisecond
		for _, l := range r.Limits {
			life = max(life, l.Guarantees().Lifetime)
		}
		window := min(life+life/4, core.MaxWindow).Truncate(time.Microsecond)
		marks = append(marks, core.StoreRule{Name: r.Name, Limits: []core.Limit{
			{Name: r.Name, Quota: core.MaxQuota, Window: window, Algorithm: core.FixedWindow},
		}})
		lives = append(lives, min(life, window))
	}
	return marks, lives
}

func (s *Store) bindOwed(limiter string, rules []core.StoreRule) (*owed, error) {
	marks, lives := owedRules(rules)
	bound, err := s.marks.Bind(limiter, marks)
	if err != nil {
		return nil, err
	}
	return &owed{bound, new(atomic.Int64), s.now, lives}, nil
}

func (o *owed) rebind(rules []core.StoreRule) (*owed, error) {
	marks, lives := owedRules(rules)
	bound, err := o.bound.Rebind(marks)
	if err != nil {
		return nil, err
	}
	return &owed{bound, o.until, o.now, lives}, nil
}

// note remembers the keys of a batch that was admitted in the process.
func (o *owed) note(ctx context.Context, batch *core.Batch) {
	marks := newMirror(batch)
	defer marks.free()
	marks.single()
	if o.bound.Take(ctx, &marks.batch) != nil {
		return // closed: nothing counts here any more
	}
	old := func(it core.Item) bool { return it.Cost > 0 && it.Results[0].ResetAfter < o.lives[it.Rule] }
	if slices.ContainsFunc(marks.items, old) {
		_ = o.bound.Reset(ctx, &marks.batch)
		_ = o.bound.Take(ctx, &marks.batch)
	}
	for i := range marks.items {
		it := &marks.items[i]
		end := it.At + it.Results[0].ResetAfter.Microseconds()
		for was := o.until.Load(); end > was && !o.until.CompareAndSwap(was, end); was = o.until.Load() {
		}
	}
}

// none says at once that no key is remembered: as a rule.
func (o *owed) none() bool {
	until := o.until.Load()
	return until == 0 || o.now() > until
}

// has says whether the key of an item is remembered.
func (o *owed) has(ctx context.Context, item *core.Item) bool {
	if item.Cost == 0 {
		return false
	}
	marks := newMirror(&core.Batch{Items: []core.Item{*item}, Peek: true})
	defer marks.free()
	marks.single()
	return o.bound.Take(ctx, &marks.batch) == nil && marks.items[0].Results[0].Remaining < core.MaxQuota
}

// forget forgets the keys of a batch.
func (o *owed) forget(ctx context.Context, batch *core.Batch) {
	if o.none() {
		return
	}
	marks := newMirror(batch)
	defer marks.free()
	marks.single()
	_ = o.bound.Reset(ctx, &marks.batch)
}
