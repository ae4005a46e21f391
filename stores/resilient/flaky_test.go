package resilient_test

import (
	"context"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// flaky is a store that can be told to fail or to hang.

type flaky struct {
	core.Store
	err     atomic.Pointer[error] // nil: works
	deny    atomic.Bool           // others have used the quotas up
	late    atomic.Bool           // fails when it has done what it was asked
	full    atomic.Bool           // refuses charges, and nothing else
	hang    atomic.Bool           // until the context of the test ends
	end     chan struct{}
	asked   atomic.Int64
	leases  atomic.Int64 // calls of Release and Renew
	forgets bool         // resets, releases and renewals do not fail
	between atomic.Value // a func() that is called after a Peek
	given   atomic.Value // a func() that is called after a Refund or a Grant
	slow    atomic.Value // a func() that is called before each operation
	most    atomic.Int64 // most at a time
	now     atomic.Int64
}

func (f *flaky) fail(err error) {
	if err == nil {
		f.err.Store(nil)
	} else {
		f.err.Store(&err)
	}
}

func (f *flaky) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := f.Store.Bind(limiter, rules)
	return flakyBound{b, f}, err
}

type flakyBound struct {
	core.Bound
	f *flaky
}

func (b flakyBound) do(op func() error) error {
	b.f.asked.Add(1)
	if n := b.f.now.Add(1); n > b.f.most.Load() {
		b.f.most.Store(n)
	}
	defer b.f.now.Add(-1)
	if b.f.hang.Load() {
		<-b.f.end
	}
	if f := b.f.slow.Load(); f != nil {
		f.(func())()
	}
	if err := b.f.err.Load(); err != nil {
		return *err
	}
	err := op()
	if b.f.late.Load() {
		return errGone
	}
	return err
}

func (b flakyBound) Take(ctx context.Context, batch *core.Batch) error {
	if b.f.deny.Load() {
		batch = &core.Batch{Items: batch.Items, Peek: true}
		return b.do(func() error { return b.Bound.Take(ctx, batch) }) // and not allowed
	}
	if b.f.full.Load() && !batch.Peek {
		return b.do(func() error { return errFull })
	}
	err := b.do(func() error { return b.Bound.Take(ctx, batch) })
	if f := b.f.between.Load(); f != nil && batch.Peek {
		f.(func())()
	}
	return err
}

func (b flakyBound) Charge(ctx context.Context, batch *core.Batch) error {
	if b.f.full.Load() {
		return b.do(func() error { return errFull })
	}
	return b.do(func() error { return b.Bound.Charge(ctx, batch) })
}

func (b flakyBound) Refund(ctx context.Context, batch *core.Batch) error {
	defer b.gave()
	return b.do(func() error { return b.Bound.Refund(ctx, batch) })
}

func (b flakyBound) gave() {
	if f := b.f.given.Load(); f != nil {
		f.(func())()
	}
}

func (b flakyBound) Reset(ctx context.Context, batch *core.Batch) error {
	if b.f.forgets {
		return b.Bound.Reset(ctx, batch)
	}
	return b.do(func() error { return b.Bound.Reset(ctx, batch) })
}

func (b flakyBound) Release(ctx context.Context, batch *core.Batch) error {
	return b.lease(func() error { return b.Bound.(core.Leaser).Release(ctx, batch) })
}

func (b flakyBound) Renew(ctx context.Context, batch *core.Batch) error {
	return b.lease(func() error { return b.Bound.(core.Leaser).Renew(ctx, batch) })
}

func (b flakyBound) lease(op func() error) error {
	if b.f.forgets {
		return op()
	}
	b.f.leases.Add(1)
	return b.do(op)
}

func (b flakyBound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	next, err := b.Bound.Rebind(rules)
	return flakyBound{next, b.f}, err
}

// Beside is that of the bound, through the same flakiness.
func (b flakyBound) Beside(rules []core.StoreRule) (core.Bound, error) {
	d, ok := b.Bound.(resilient.Divisible)
	if !ok {
		return nil, nil
	}
	payer, err := d.Beside(rules)
	return flakyBound{payer, b.f}, err
}
