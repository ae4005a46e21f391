package denycache_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
)

// meddling is a Memory in which something happens while it changes a key, before it has done so.
type meddling struct {
	*core.Memory
	meanwhile func()
	err       error // of the changes; nil: they succeed
	takes     int
}

type meddlingBound struct {
	core.Bound
	store *meddling
}

func (m *meddling) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := m.Memory.Bind(limiter, rules)
	return meddlingBound{b, m}, err
}

func (b meddlingBound) change(op func() error) error {
	if f := b.store.meanwhile; f != nil {
		b.store.meanwhile = nil
		f()
	}
	if b.store.err != nil {
		return b.store.err
	}
	return op()
}

func (b meddlingBound) Take(ctx context.Context, batch *core.Batch) error {
	b.store.takes++
	return b.Bound.Take(ctx, batch)
}

func (b meddlingBound) Charge(ctx context.Context, batch *core.Batch) error {
	return b.change(func() error { return b.Bound.Charge(ctx, batch) })
}

func (b meddlingBound) Refund(ctx context.Context, batch *core.Batch) error {
	return b.change(func() error { return b.Bound.Refund(ctx, batch) })
}

func (b meddlingBound) Reset(ctx context.Context, batch *core.Batch) error {
	return b.change(func() error { return b.Bound.Reset(ctx, batch) })
}

func (b meddlingBound) Block(ctx context.Context, batch *core.Batch, d time.Duration) error {
	return b.change(func() error { return b.Bound.(core.Blocker).Block(ctx, batch, d) })
}

func (b meddlingBound) Grant(ctx context.Context, batch *core.Batch) error {
	return b.change(func() error { return b.Bound.(core.Granter).Grant(ctx, batch) })
}

func (b meddlingBound) ResetAll(ctx context.Context) error {
	return b.change(func() error { return b.Bound.(core.ResetterOfAll).ResetAll(ctx) })
}

// A request that is denied while the store changes its key is not remembered beyond the change: the next one asks the
// store. So it does after a change that has failed, as the store may have made it.
func TestADenialDuringAChangeIsForgotten(t *testing.T) {
	clock, gone := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789)), errors.New("no reply")
	k := core.Hit{Rule: "r", Key: "k"}
	for name, change := range map[string]func(*core.Limiter, core.Decision) error{
		"Charge":   func(l *core.Limiter, d core.Decision) error { return l.Adjust(t.Context(), d, 5) },
		"Adjust":   func(l *core.Limiter, d core.Decision) error { return l.Adjust(t.Context(), d, 0) },
		"Reset":    func(l *core.Limiter, _ core.Decision) error { return l.Reset(t.Context(), k) },
		"ResetAll": func(l *core.Limiter, _ core.Decision) error { return l.ResetAll(t.Context()) },
		"Block":    func(l *core.Limiter, _ core.Decision) error { return l.Block(t.Context(), 0, k) },
		"Grant": func(l *core.Limiter, _ core.Decision) error {
			_, err := l.Grant(t.Context(), 1, k)
			return err
		},
	} {
		for _, failed := range []error{nil, gone} {
			s := &meddling{Memory: core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now})), err: failed}
			l := limiterOver(t, s, clock)
			d, err := l.Take(t.Context(), 1, k)
			if err != nil || !l.Allow(t.Context(), k) || !l.Allow(t.Context(), k) || l.Allow(t.Context(), k) {
				t.Fatal(d, err)
			}
			s.meanwhile = func() { l.Allow(t.Context(), k) }
			if err := change(l, d); !errors.Is(err, failed) {
				t.Errorf("%s: %v", name, err)
			}
			before := s.takes
			if l.Allow(t.Context(), k); s.takes == before {
				t.Errorf("%s, error %v: the store is not asked after it", name, failed)
			}
		}
	}
}
