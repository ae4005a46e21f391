package policy

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// places is a store in which some rules count in a local store and some in a shared
// one, as the field counting says. A batch for both is charged to the local store
// first, and refunded there if the shared store denies it.
type places struct {
	local, shared core.Store

	// isLocal returns whether a rule of the next Bind or Rebind counts locally.
	isLocal func(rule string) bool
}

// Traits returns what both stores promise.
func (p *places) Traits() core.Traits {
	a, _ := core.TraitsOf(p.local) // a store that cannot be used promises nothing
	b, _ := core.TraitsOf(p.shared)
	return core.Traits{
		Exact:         a.Exact && b.Exact,
		NeverOpens:    a.NeverOpens && b.NeverOpens,
		Closes:        a.Closes && b.Closes,
		KeepsDeadline: a.KeepsDeadline && b.KeepsDeadline,
		FailsFast:     a.FailsFast && b.FailsFast,
		Private:       a.Private && b.Private,
	}
}

// Bind implements [core.Store].
func (p *places) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b := p.split(rules)
	var err error
	if b.local, err = p.local.Bind(limiter, b.localRules); err != nil {
		return nil, err
	}
	if b.shared, err = p.shared.Bind(limiter, b.sharedRules); err != nil {
		return nil, err
	}
	return b, b.checkLeasers()
}

// placesBound is a [core.Bound] over two others.
type placesBound struct {
	places                  *places
	isLocal                 []bool // by rule
	index                   []int  // of a rule in the store in which it counts
	localRules, sharedRules []core.StoreRule
	local, shared           core.Bound
	parts                   sync.Pool // of *parts
}

func (p *places) split(rules []core.StoreRule) *placesBound {
	b := &placesBound{places: p}
	b.parts.New = func() any { return new(parts) }
	for _, r := range rules {
		local := p.isLocal(r.Name)
		to := &b.sharedRules
		if local {
			to = &b.localRules
		}
		b.isLocal, b.index = append(b.isLocal, local), append(b.index, len(*to))
		*to = append(*to, r)
	}
	return b
}

// Rebind implements [core.Bound].
func (b *placesBound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	next := b.places.split(rules)
	var err error
	if next.shared, err = b.shared.Rebind(next.sharedRules); err != nil {
		return nil, err
	}
	if next.local, err = b.local.Rebind(next.localRules); err != nil {
		_, back := b.shared.Rebind(b.sharedRules)
		return nil, errors.Join(err, back)
	}
	return next, next.checkLeasers()
}

// parts is a batch in two parts.
type parts struct {
	local, shared part
}

// part is the items of a batch that are for one store.
type part struct {
	batch core.Batch
	from  []int // the index of each item in the whole batch
}

func (b *placesBound) split(whole *core.Batch) *parts {
	p := b.parts.Get().(*parts)
	for i := range whole.Items {
		item := whole.Items[i]
		to := &p.shared
		if b.isLocal[item.Rule] {
			to = &p.local
		}
		item.Rule = b.index[item.Rule]
		to.batch.Items, to.from = append(to.batch.Items, item), append(to.from, i)
	}
	for _, part := range []*part{&p.local, &p.shared} {
		part.batch.Peek, part.batch.Degraded = whole.Peek, whole.Degraded
	}
	return p
}

// release returns the parts to their pool.
func (b *placesBound) release(p *parts) {
	for _, part := range []*part{&p.local, &p.shared} {
		clear(part.batch.Items)
		part.batch, part.from = core.Batch{Items: part.batch.Items[:0]}, part.from[:0]
	}
	b.parts.Put(p)
}

// Take implements [core.Bound].
func (b *placesBound) Take(ctx context.Context, whole *core.Batch) error {
	p := b.split(whole)
	defer b.release(p)
	whole.Allowed, whole.Degraded = true, false
	if err := b.takeLocal(ctx, p, whole); err != nil {
		return err
	}
	if len(p.shared.batch.Items) == 0 {
		return nil
	}
	if !whole.Allowed {
		// Nothing will be charged. The shared store's results would only serve the
		// response's headers, which is not worth a round trip.
		for _, i := range p.shared.from {
			whole.Items[i].Unknown = true
		}
		return nil
	}
	err := b.shared.Take(ctx, &p.shared.batch)
	if err == nil {
		p.shared.tell(whole)
	}
	if (err != nil || !p.shared.batch.Allowed) && !whole.Peek && len(p.local.batch.Items) > 0 {
		err = errors.Join(err, b.undo(ctx, p, whole))
	}
	return err
}

func (b *placesBound) takeLocal(ctx context.Context, p *parts, whole *core.Batch) error {
	if len(p.local.batch.Items) == 0 {
		return nil
	}
	err := b.local.Take(ctx, &p.local.batch)
	p.local.tell(whole)
	return err
}

// undo refunds the local charges and updates the results.
func (b *placesBound) undo(ctx context.Context, p *parts, whole *core.Batch) error {
	ctx = context.WithoutCancel(ctx)
	err := errors.Join(b.local.Refund(ctx, &p.local.batch), b.releaseLocal(ctx, &p.local.batch))
	p.local.batch.Peek = true
	if err == nil {
		err = b.local.Take(ctx, &p.local.batch)
		p.local.tell(whole)
	}
	return err
}

// tell copies a store's results for a part into the whole batch.
func (p *part) tell(whole *core.Batch) {
	for i, at := range p.from {
		whole.Items[at].At, whole.Items[at].Unknown = p.batch.Items[i].At, p.batch.Items[i].Unknown
	}
	whole.Allowed = whole.Allowed && p.batch.Allowed
	whole.Degraded = whole.Degraded || p.batch.Degraded
}

// Charge implements [core.Bound].
func (b *placesBound) Charge(ctx context.Context, whole *core.Batch) error {
	return b.chargeBoth(whole, func(isShared bool, part *core.Batch) error {
		if isShared {
			return b.shared.Charge(ctx, part)
		}
		return b.local.Charge(ctx, part)
	})
}

// chargeBoth charges the parts of a batch with do, first that of the shared store.
func (b *placesBound) chargeBoth(whole *core.Batch, do func(isShared bool, part *core.Batch) error) error {
	p := b.split(whole)
	defer b.release(p)
	whole.Allowed, whole.Degraded = true, false
	var errs []error
	for _, to := range []*part{&p.shared, &p.local} {
		if len(to.batch.Items) == 0 {
			continue
		}
		err := do(to == &p.shared, &to.batch)
		to.tell(whole)
		if errors.Is(err, core.ErrNotCharged) {
			return err // the shared store has charged nothing: nor do the local counters, so that the error is true
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Grant implements [core.Granter], if both stores do.
func (b *placesBound) Grant(ctx context.Context, whole *core.Batch) error {
	local, can := b.local.(core.Granter)
	shared, both := b.shared.(core.Granter)
	if !can || !both {
		return core.ErrUnsupported
	}
	return b.chargeBoth(whole, func(isShared bool, part *core.Batch) error {
		if isShared {
			return shared.Grant(ctx, part)
		}
		return local.Grant(ctx, part)
	})
}

// Refund implements [core.Bound].
func (b *placesBound) Refund(ctx context.Context, whole *core.Batch) error {
	return b.both(whole, func(bound core.Bound, part *core.Batch) error { return bound.Refund(ctx, part) })
}

// Reset implements [core.Bound].
func (b *placesBound) Reset(ctx context.Context, whole *core.Batch) error {
	return b.both(whole, func(bound core.Bound, part *core.Batch) error { return bound.Reset(ctx, part) })
}

func (b *placesBound) both(whole *core.Batch, do func(core.Bound, *core.Batch) error) error {
	p := b.split(whole)
	defer b.release(p)
	var errs []error
	if len(p.local.batch.Items) > 0 {
		errs = append(errs, do(b.local, &p.local.batch))
	}
	if len(p.shared.batch.Items) > 0 {
		errs = append(errs, do(b.shared, &p.shared.batch))
	}
	return errors.Join(errs...)
}

// Block implements [core.Blocker], if both stores do.
func (b *placesBound) Block(ctx context.Context, whole *core.Batch, d time.Duration) error {
	return b.both(whole, func(bound core.Bound, part *core.Batch) error {
		if blocker, ok := bound.(core.Blocker); ok {
			return blocker.Block(ctx, part, d)
		}
		return core.ErrUnsupported
	})
}

// ResetAll implements [core.ResetterOfAll], if both stores do.
func (b *placesBound) ResetAll(ctx context.Context) error {
	var errs []error
	for _, bound := range []core.Bound{b.local, b.shared} {
		if r, ok := bound.(core.ResetterOfAll); ok {
			errs = append(errs, r.ResetAll(ctx))
		} else {
			errs = append(errs, core.ErrUnsupported)
		}
	}
	return errors.Join(errs...)
}
