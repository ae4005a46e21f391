package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Swapper is what a store outside the process must be able to do at the least,
// for [NewSwapStore] to make a [Store] of it: keep values under names, and
// replace one only if nobody else has in between. Its methods may be called
// concurrently. Names are as [StoredKey] makes them.
type Swapper interface {
	// Load returns the value of every name, in order, and with it a version
	// that Swap takes; of a name that has none, the zero SwapValue.
	Load(ctx context.Context, names []string) ([]SwapValue, error)
	// Swap stores a value for a name whose version is still old's (for the
	// zero SwapValue: that has no value), and tells whether it has. The value
	// must be kept for ttl at least, and may be dropped after that. After an
	// error it is not known whether the value was stored.
	Swap(ctx context.Context, name string, old SwapValue, value []byte, ttl time.Duration) (bool, error)
	// Delete forgets the values of the names; those without one are no error.
	Delete(ctx context.Context, names []string) error
}

// SwapValue is a value as a Swapper has loaded it.
type SwapValue struct {
	Value   []byte
	Version any // nil: the name has no value
}

// SwapConfig configures NewSwapStore. The zero value works.
type SwapConfig struct {
	// Clock tells the time of decisions; every process that shares the
	// counters needs one that agrees. nil: time.Now.
	Clock func() time.Time
	// Attempts is how often a value is loaded and swapped when others are
	// faster, before the operation fails with ErrContended: 1 or more; 0 means
	// 32.
	Attempts int
}

// ErrContended is wrapped by the error of an operation that others have
// overtaken too often. Nothing has been charged.
var ErrContended = errors.New("floodgate: too many others changed the counter meanwhile")

// SwapStore is a [Store] made of a [Swapper].
//
// The state of all limits of one key of one rule is one value, so that one key
// is decided on in one step. Several keys are loaded together and swapped one
// by one: where a later one then turns out to be over its limit, what the
// earlier ones were charged is given back.
type SwapStore struct {
	swapper  Swapper
	now      func() int64
	attempts int

	mu    sync.Mutex
	names map[string]bool
}

// NewSwapStore returns a store that counts in s. The error wraps [ErrConfig].
func NewSwapStore(s Swapper, c SwapConfig) (*SwapStore, error) {
	if s == nil {
		return nil, fmt.Errorf("%w: Swapper: nil", ErrConfig)
	}
	if c.Attempts < 0 {
		return nil, fmt.Errorf("%w: Attempts: %d: must be 1 or more, or 0 for 32", ErrConfig, c.Attempts)
	}
	if c.Attempts == 0 {
		c.Attempts = 32
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return &SwapStore{swapper: s, now: microClock(c.Clock), attempts: c.Attempts, names: map[string]bool{}}, nil
}

// Bind implements [Store].
func (s *SwapStore) Bind(limiter string, rules []StoreRule) (Bound, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[limiter] {
		return nil, fmt.Errorf("%w: Name: %q: this store already counts for a limiter of that name", ErrConfig, limiter)
	}
	s.names[limiter] = true
	return newSwapBound(s, limiter, rules), nil
}

// swapBound is the Bound of a SwapStore.
type swapBound struct {
	*SwapStore
	limiter string
	rules   []swapRule
}

type swapRule struct {
	name   string
	ids    []identity
	meters []meter
}

func newSwapBound(s *SwapStore, limiter string, rules []StoreRule) *swapBound {
	b := &swapBound{SwapStore: s, limiter: limiter}
	for _, r := range rules {
		rule := swapRule{name: r.Name, meters: newMeters(r.Limits)}
		for _, l := range r.Limits {
			rule.ids = append(rule.ids, l.identity())
		}
		b.rules = append(b.rules, rule)
	}
	return b
}

// Rebind implements [Bound]. Values say which limits they count for: those that
// stay are found again.
func (b *swapBound) Rebind(rules []StoreRule) (Bound, error) {
	return newSwapBound(b.SwapStore, b.limiter, rules), nil
}

// swapItem is an item with its value as last loaded.
type swapItem struct {
	*Item
	rule   *swapRule
	name   string
	loaded SwapValue
	states [][]uint64
	ahead  bool // the clock has been set back: store the state even if nothing is charged
}

func (b *swapBound) items(batch *Batch) []swapItem {
	items := make([]swapItem, len(batch.Items))
	for i := range items {
		it := &batch.Items[i]
		rule := &b.rules[it.Rule]
		items[i] = swapItem{Item: it, rule: rule, name: StoredKey(b.limiter, rule.name, it.Key)}
	}
	return items
}

func (b *swapBound) load(ctx context.Context, items []swapItem) error {
	names := make([]string, len(items))
	for i := range items {
		names[i] = items[i].name
	}
	values, err := b.swapper.Load(ctx, names)
	if err != nil {
		return err
	}
	for i := range items {
		it := &items[i]
		it.loaded = values[i]
		it.states = decodeStates(it.loaded.Value, it.rule.ids, it.rule.meters)
	}
	return nil
}

// judge decides on an item as loaded.
func (it *swapItem) judge(now int64) bool {
	allowed := true
	it.ahead = false
	for i := range it.rule.meters {
		m, w := &it.rule.meters[i], it.states[i]
		it.ahead = it.ahead || m.ahead(w, now)
		m.advance(w, now)
		ok := m.admits(w, now, it.Cost)
		report(&it.Results[i], m, w, now, it.Cost, ok)
		allowed = allowed && ok
	}
	it.At = now
	return allowed
}

// charge adds the cost to the states as loaded.
func (it *swapItem) charge(now int64) {
	for i := range it.rule.meters {
		m := &it.rule.meters[i]
		w := it.states[i]
		if need := m.words(w, it.Cost); len(w) < need {
			w = make([]uint64, need)
			m.grow(w, it.states[i])
			it.states[i] = w
		}
		m.charge(w, now, it.Cost)
		report(&it.Results[i], m, w, now, it.Cost, true)
	}
}

// store swaps the item's states for what was loaded.
func (b *swapBound) store(ctx context.Context, it *swapItem, now int64) (bool, error) {
	var ttl int64
	for i := range it.rule.meters {
		ttl = max(ttl, it.rule.meters[i].expiry(it.states[i])-now)
	}
	value := encodeStates(it.rule.ids, it.rule.meters, it.states)
	return b.swapper.Swap(ctx, it.name, it.loaded, value, micros(max(ttl, 1)))
}

// Take implements [Bound].
func (b *swapBound) Take(ctx context.Context, batch *Batch) error {
	items := b.items(batch)
	todo := items // those not charged yet
	for attempt := range b.attempts {
		if err := b.pause(ctx, attempt); err != nil {
			return b.undo(ctx, items, todo, err)
		}
		if err := b.load(ctx, todo); err != nil {
			return b.undo(ctx, items, todo, err)
		}
		now := b.now()
		batch.Allowed = true
		for i := range todo {
			batch.Allowed = todo[i].judge(now) && batch.Allowed
		}
		if !batch.Allowed || batch.Peek {
			return b.refuse(ctx, items, todo, now)
		}
		var err error
		if todo, err = b.swapAll(ctx, todo, now); err != nil {
			return b.undo(ctx, items, todo, err)
		}
		if len(todo) == 0 {
			return nil
		}
	}
	return b.undo(ctx, items, todo, fmt.Errorf("limiter %q: %d attempts: %w", b.limiter, b.attempts, ErrContended))
}

// swapAll charges and stores one item after the other until one has been
// changed by somebody else, and returns what is left to do.
func (b *swapBound) swapAll(ctx context.Context, todo []swapItem, now int64) ([]swapItem, error) {
	for len(todo) > 0 {
		it := &todo[0]
		if it.Cost > 0 {
			it.charge(now)
			stored, err := b.store(ctx, it, now)
			if err != nil || !stored {
				return todo, err
			}
		}
		todo = todo[1:]
	}
	return todo, nil
}

// refuse ends a Take that charges nothing: what the items before todo were
// charged is given back.
func (b *swapBound) refuse(ctx context.Context, items, todo []swapItem, now int64) error {
	for i := range todo {
		if it := &todo[i]; it.ahead {
			if _, err := b.store(ctx, it, now); err != nil { // whoever came in between has mended it
				return b.undo(ctx, items, todo, err)
			}
		}
	}
	done := items[:len(items)-len(todo)]
	if len(done) == 0 {
		return nil
	}
	if err := b.undo(ctx, items, todo, nil); err != nil {
		return err
	}
	if err := b.load(ctx, done); err != nil {
		return err
	}
	for i := range done {
		done[i].judge(now)
	}
	return nil
}

// undo gives back what the items before todo were charged, and returns cause.
func (b *swapBound) undo(ctx context.Context, items, todo []swapItem, cause error) error {
	done := items[:len(items)-len(todo)]
	if len(done) == 0 {
		return cause
	}
	ctx = context.WithoutCancel(ctx)
	errs := []error{cause}
	for i := range done {
		if done[i].Cost > 0 {
			errs = append(errs, b.change(ctx, &done[i], (*swapItem).refund))
		}
	}
	return errors.Join(errs...)
}

func (it *swapItem) refund(now int64) {
	for i := range it.rule.meters {
		m, w := &it.rule.meters[i], it.states[i]
		m.advance(w, now)
		m.refund(w, now, it.At, int64(it.Results[i].ResetAfter/time.Microsecond), it.Cost)
	}
}

// change loads, changes and swaps one item until nobody comes in between.
func (b *swapBound) change(ctx context.Context, it *swapItem, f func(it *swapItem, now int64)) error {
	for attempt := range b.attempts {
		if err := b.pause(ctx, attempt); err != nil {
			return err
		}
		one := []swapItem{*it}
		if err := b.load(ctx, one); err != nil {
			return err
		}
		if one[0].loaded.Version == nil {
			return nil // gone: nothing is owed
		}
		now := b.now()
		f(&one[0], now)
		if stored, err := b.store(ctx, &one[0], now); err != nil || stored {
			return err
		}
	}
	return fmt.Errorf("limiter %q: %d attempts: %w", b.limiter, b.attempts, ErrContended)
}

// pause waits before another attempt, for a time that is random so that those
// who have met once do not meet again.
func (b *swapBound) pause(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return nil
	}
	most := time.Duration(1<<min(attempt, 7)) * 100 * time.Microsecond
	timer := time.NewTimer(rand.N(most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Refund implements [Bound].
func (b *swapBound) Refund(ctx context.Context, batch *Batch) error {
	var errs []error
	for _, it := range b.items(batch) {
		errs = append(errs, b.change(ctx, &it, (*swapItem).refund))
	}
	return errors.Join(errs...)
}

// Reset implements [Bound].
func (b *swapBound) Reset(ctx context.Context, batch *Batch) error {
	names := make([]string, 0, len(batch.Items))
	for _, it := range b.items(batch) {
		names = append(names, it.name)
	}
	return b.swapper.Delete(ctx, names)
}
