package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// slowStore is a Memory that takes a second to give hits back, once slow is set.
type slowStore struct {
	*core.Memory
	slow bool
}

type slowBound struct {
	core.Bound
	core.Blocker
	core.ResetterOfAll

	store *slowStore
}

func (s *slowStore) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.Memory.Bind(limiter, rules)
	return &slowBound{b, b.(core.Blocker), b.(core.ResetterOfAll), s}, err
}

func (b *slowBound) wait() {
	if b.store.slow {
		time.Sleep(time.Second)
	}
}

func (b *slowBound) Refund(ctx context.Context, batch *core.Batch) error {
	b.wait()
	return b.Bound.Refund(ctx, batch)
}

func (b *slowBound) Reset(ctx context.Context, batch *core.Batch) error {
	b.wait()
	return b.Bound.Reset(ctx, batch)
}

func (b *slowBound) Block(ctx context.Context, batch *core.Batch, d time.Duration) error {
	b.wait()
	return b.Blocker.Block(ctx, batch, d)
}

func (b *slowBound) ResetAll(ctx context.Context) error {
	b.wait()
	return b.ResetterOfAll.ResetAll(ctx)
}

// A store takes its time to give hits back: the requests that wait get their turn once it has done so, and
// not before, when they would find nothing.
func TestWhatASlowStoreGivesBackEndsAWait(t *testing.T) {
	for name, giveBack := range givesBack {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, config, c := &slowStore{Memory: core.Must(core.NewMemory(core.MemoryConfig{}))}, forgiving(), newCrowd()
				config.Store = s
				l := newLimiter(t, config, nil)
				first := l.Check(&request{})
				if name == "Block" {
					_ = l.Reset(t.Context(), waitedFor)
					_ = l.Block(t.Context(), time.Minute, waitedFor)
				}
				for i := range 2 {
					c.come(i, func() (core.Decision, error) { return l.Wait(t.Context(), 1, waitedFor) })
				}
				s.slow = true
				if err := giveBack(t.Context(), l, first); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if c.inOrder(t, 2); c.at(1) != time.Second {
					t.Errorf("the last one waited for %v", c.at(1))
				}
			})
		})
	}
}
