package login_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// shared is a store that several guards of one process bind by the same name,
// as guards in several processes do. It counts how often it is asked, and can
// be cut off.
type shared struct {
	*core.Memory
	mu    sync.Mutex
	bound map[string]core.Bound
	asked map[string]*atomic.Int64
	gone  atomic.Bool
	only  string       // the limiter that is cut off; "": all
	left  atomic.Int64 // how many questions it still answers when it is cut off
	once  atomic.Bool  // it fails once
}

func newShared(t *testing.T, c core.MemoryConfig) *shared {
	t.Helper()
	m, err := core.NewMemory(c)
	if err != nil {
		t.Fatal(err)
	}
	return &shared{Memory: m, bound: map[string]core.Bound{}, asked: map[string]*atomic.Int64{}}
}

func (s *shared) Traits() core.Traits {
	return core.Traits{Exact: true, NeverOpens: true, Closes: true}
}

func (s *shared) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bound[limiter]; b != nil {
		return b, nil
	}
	b, err := s.Memory.Bind(limiter, rules)
	if err != nil {
		return nil, err
	}
	s.asked[limiter] = new(atomic.Int64)
	s.bound[limiter] = sharedBound{b, s, limiter, s.asked[limiter]}
	return s.bound[limiter], nil
}

type sharedBound struct {
	core.Bound
	s       *shared
	limiter string
	asked   *atomic.Int64
}

func (b sharedBound) Take(ctx context.Context, batch *core.Batch) error {
	return b.ask(ctx, batch, b.Bound.Take)
}

func (b sharedBound) Refund(ctx context.Context, batch *core.Batch) error {
	return b.ask(ctx, batch, b.Bound.Refund)
}

func (b sharedBound) Reset(ctx context.Context, batch *core.Batch) error {
	return b.ask(ctx, batch, b.Bound.Reset)
}

func (b sharedBound) ask(ctx context.Context, batch *core.Batch, op func(context.Context, *core.Batch) error) error {
	b.asked.Add(1)
	if b.s.gone.Load() && (b.s.only == "" || b.s.only == b.limiter) && b.s.left.Add(-1) < 0 {
		b.s.gone.Store(!b.s.once.Load())
		return errGone
	}
	return op(ctx, batch)
}
