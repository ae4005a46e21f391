package inflight

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Slot is a held slot of a key.
type Slot struct {
	Key string
	// ID is different for each slot that is held.
	ID uint64
}

// Store keeps the slots of several processes. Its methods may be called concurrently. Each
// returns within a deadline of the store's own.
type Store interface {
	// AcquireSlot takes a slot for one lease if the key holds fewer slots than limit. held is
	// the number of slots held afterwards. ok reports whether the slot is held, also
	// if an earlier call has taken it. If err is not nil, the slot may have been taken.
	AcquireSlot(ctx context.Context, limiter string, s Slot, limit int64, lease time.Duration) (held int64, ok bool, err error)
	// RenewSlots extends slots to one lease from now, even slots that have ended.
	RenewSlots(ctx context.Context, limiter string, slots []Slot, lease time.Duration) error
	// ReleaseSlots ends slots. Those that have ended, or never were, are no error.
	ReleaseSlots(ctx context.Context, limiter string, slots []Slot) error
}

// retryAfter is the RetryAfter of a denied request, because the next release is unknown. It is
// also how often the first in a line asks again.
const retryAfter = 100 * time.Millisecond

// slots is the [core.Store] of a Limiter. A take takes a slot, and a refund releases it.
type slots struct {
	name  string
	lease time.Duration
	store Store // nil: this process only
	held  atomic.Int64

	seed   maphash.Seed
	shards [64]shard // of this process; unused with a store
	keeper keeper    // used with a store
	closed atomic.Bool
}

// shard has the number of slots of some keys.
type shard struct {
	mu   sync.Mutex
	held map[string]*int64
	free []*int64 // for other keys: a new one for each request would be an allocation
}

func newSlots(c Config) *slots {
	s := &slots{name: c.Name, lease: c.Lease, store: c.Store, seed: maphash.MakeSeed()}
	s.keeper = keeper{slots: s, held: map[Slot]struct{}{}, unreleased: map[Slot]time.Time{}}
	for i := range s.shards {
		s.shards[i].held = map[string]*int64{}
	}
	return s
}

// Guarantees implements [core.Store].
func (s *slots) Guarantees() core.Guarantees {
	return core.Guarantees{Ops: core.OpTake | core.OpRefund, Exact: true, OneStep: true, Shared: s.store != nil, KeepsDeadline: true, OnFailure: core.FailClosed}
}

// Open implements [core.Store].
func (s *slots) Open(_ string, rules []core.StoreRule) (core.Counters, error) {
	return &counters{s, rules[0].Limits[0].Quota}, nil
}

func (s *slots) close() {
	s.closed.Store(true)
	s.keeper.close()
}

// counters are the slots under one configuration.
type counters struct {
	*slots

	most int64
}

// Reopen implements [core.Counters].
func (c *counters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	return c.Open(c.name, rules)
}

// Do implements [core.Counters]. A batch has one item, because the limiter has one rule.
func (c *counters) Do(ctx context.Context, b *core.Batch) error {
	it := &b.Items[0]
	switch b.Op {
	case core.OpTake:
		if c.closed.Load() {
			return fmt.Errorf("slots of limiter %q: %w: %w", c.name, core.ErrNotCharged, core.ErrClosed)
		}
		held, err := c.take(ctx, it)
		if err != nil {
			return err
		}
		b.Allowed = held >= 0
		it.Results[0] = core.Result{Allowed: b.Allowed, Remaining: max(c.most-held, 0)}
		if !b.Allowed {
			it.Results[0] = core.Result{RetryAfter: retryAfter}
		}
		return nil
	case core.OpRefund:
		c.release(ctx, it)
		return nil
	default:
		return fmt.Errorf("%v: %w", b.Op, core.ErrUnsupported)
	}
}

// take takes a slot for an item, and returns how many are held then, -1 if none is free. The
// slot's ID is in the item's At, which the refund gets too.
func (c *counters) take(ctx context.Context, it *core.Item) (held int64, err error) {
	if c.store == nil {
		held = c.shard(it.Key).take(it.Key, c.most)
	} else {
		s := Slot{string(it.Key), rand.Uint64() >> 1} //nolint:gosec // it need not be secret
		it.At = int64(s.ID)
		held, err = c.takeShared(ctx, s)
	}
	if err == nil && held >= 0 {
		c.held.Add(1)
	}
	return held, err
}

func (c *counters) takeShared(ctx context.Context, s Slot) (int64, error) {
	began := time.Now()
	held, ok, err := c.store.AcquireSlot(ctx, c.name, s, c.most, c.lease)
	switch {
	case err != nil:
		if !errors.Is(err, core.ErrNotCharged) {
			c.keeper.releaseLater(s)
		}
		return 0, err
	case !ok:
		return -1, nil
	}
	c.keeper.add(s, began)
	return held, nil
}

// release releases the slot of an item. Its context is never cancelled: core's Adjust takes care.
func (c *counters) release(ctx context.Context, it *core.Item) {
	defer c.held.Add(-1) // when the slot is free
	if c.store == nil {
		c.shard(it.Key).release(it.Key)
		return
	}
	s := Slot{string(it.Key), uint64(it.At)}
	renewing := c.keeper.remove(s)
	if err := c.store.ReleaseSlots(ctx, c.name, []Slot{s}); err != nil || renewing {
		c.keeper.releaseLater(s)
	}
}

func (s *slots) shard(key []byte) *shard {
	return &s.shards[maphash.Bytes(s.seed, key)%uint64(len(s.shards))]
}

func (s *shard) take(key []byte, most int64) (held int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.held[string(key)]
	if n == nil {
		if last := len(s.free) - 1; last >= 0 {
			n, s.free = s.free[last], s.free[:last]
		} else {
			n = new(int64)
		}
		s.held[string(key)] = n
	}
	if *n >= most {
		return -1
	}
	*n++
	return *n
}

func (s *shard) release(key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.held[string(key)]
	if *n--; *n == 0 {
		delete(s.held, string(key))
		if len(s.free) < 16 {
			s.free = append(s.free, n)
		}
	}
}
