package policy

import (
	"context"
	"errors"
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// places is a store over two others. Some rules count in the local store, others in the
// shared one: see the field counting. A take of both is made in the local store first. It
// is refunded there if the shared store denies it or fails.
type places struct {
	local, shared core.Store

	// isLocal returns whether a rule counts locally, for the next Open or Reopen.
	isLocal func(rule string) bool
}

// Guarantees implements [core.Store]: it returns what both stores promise.
func (p *places) Guarantees() core.Guarantees {
	a, b := p.local.Guarantees(), p.shared.Guarantees()
	return core.Guarantees{
		Ops:           a.Ops & b.Ops,
		Exact:         a.Exact && b.Exact,
		Shared:        a.Shared || b.Shared,
		KeepsDeadline: a.KeepsDeadline && b.KeepsDeadline,
		FailsFast:     a.FailsFast && b.FailsFast,
		OnFailure:     min(a.OnFailure, b.OnFailure),
	}
}

// Open implements [core.Store].
func (p *places) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c := p.split(rules)
	var err error
	if c.local, err = p.local.Open(limiter, c.localRules); err != nil {
		return nil, err
	}
	c.shared, err = p.shared.Open(limiter, c.sharedRules)
	return c, err
}

// placesCounters are the counters of a limiter in two stores.
type placesCounters struct {
	places                  *places
	isLocal                 []bool // by rule
	index                   []int  // of a rule in the store in which it counts
	localRules, sharedRules []core.StoreRule
	local, shared           core.Counters
	halves                  sync.Pool // of *halves
}

func (p *places) split(rules []core.StoreRule) *placesCounters {
	c := &placesCounters{places: p}
	c.halves.New = func() any { return new(halves) }
	for _, r := range rules {
		local, to := p.isLocal(r.Name), &c.sharedRules
		if local {
			to = &c.localRules
		}
		c.isLocal, c.index = append(c.isLocal, local), append(c.index, len(*to))
		*to = append(*to, r)
	}
	return c
}

// Reopen implements [core.Counters].
func (c *placesCounters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	next := c.places.split(rules)
	var err error
	// The shared store is first: if it returns an error, the local counters of rules that
	// have gone must stay.
	if next.shared, err = c.shared.Reopen(next.sharedRules); err != nil {
		return nil, err
	}
	next.local, err = c.local.Reopen(next.localRules)
	return next, err
}

// halves are the two halves of a batch.
type halves struct{ local, shared half }

// half is the items of a batch that count in one store.
type half struct {
	core.Batch
	counters core.Counters
	from     []int // the index of each item in the whole batch
}

// Do implements [core.Counters].
func (c *placesCounters) Do(ctx context.Context, whole *core.Batch) error {
	if whole.Op == core.OpResetAll {
		return errors.Join(c.local.Do(ctx, whole), c.shared.Do(ctx, whole))
	}
	h := c.halves.Get().(*halves)
	defer c.release(h)
	h.local.begin(c.local, whole)
	h.shared.begin(c.shared, whole)
	for i := range whole.Items {
		to := &h.shared
		if c.isLocal[whole.Items[i].Rule] {
			to = &h.local
		}
		item := whole.Items[i]
		item.Rule = c.index[item.Rule]
		to.Items, to.from = append(to.Items, item), append(to.from, i)
	}
	whole.Allowed = true
	if whole.Op == core.OpTake || whole.Op == core.OpPeek {
		return h.take(ctx, whole)
	}
	err := h.shared.do(ctx, whole)
	if errors.Is(err, core.ErrNotCharged) {
		return err // it promises that neither store has charged
	}
	return errors.Join(err, h.local.do(ctx, whole))
}

// release returns the halves to their pool, without what the caller owns.
func (c *placesCounters) release(h *halves) {
	clear(h.local.Items)
	clear(h.shared.Items)
	c.halves.Put(h)
}

// begin makes h an empty half of a batch.
func (h *half) begin(counters core.Counters, whole *core.Batch) {
	h.counters, h.from = counters, h.from[:0]
	h.Batch = core.Batch{Op: whole.Op, For: whole.For, Degraded: whole.Degraded, Items: h.Items[:0]}
}

// do does the operation of h, and copies its results into the whole batch. It does
// nothing if h has no items.
func (h *half) do(ctx context.Context, whole *core.Batch) error {
	if len(h.Items) == 0 {
		return nil
	}
	err := h.counters.Do(ctx, &h.Batch)
	for i, at := range h.from {
		whole.Items[at].At, whole.Items[at].Unknown = h.Items[i].At, h.Items[i].Unknown
	}
	whole.Allowed, whole.Degraded = whole.Allowed && h.Allowed, whole.Degraded || h.Degraded
	return err
}

// take takes, or peeks, in the local store and then in the shared one.
func (h *halves) take(ctx context.Context, whole *core.Batch) error {
	if err := h.local.do(ctx, whole); err != nil {
		return err
	}
	if !whole.Allowed {
		// The results of the shared store would only serve the headers of the response,
		// which is not worth a round trip.
		for _, i := range h.shared.from {
			whole.Items[i].Unknown = true
		}
		return nil
	}
	err := h.shared.do(ctx, whole)
	if whole.Op == core.OpTake && (err != nil || !whole.Allowed) {
		err = errors.Join(err, h.local.undo(context.WithoutCancel(ctx), whole))
	}
	return err
}

// undo refunds a take and updates the results.
func (h *half) undo(ctx context.Context, whole *core.Batch) error {
	h.Op = core.OpRefund
	err := h.do(ctx, whole)
	h.Op = core.OpPeek
	return errors.Join(err, h.do(ctx, whole))
}
