package resilient

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

var errAway = errors.New("connection refused")

// probed is a store that is away at times. beside is what its method Beside does.
type probed struct {
	core.Bound
	err    error
	beside func() (core.Bound, error)
}

func (p *probed) Take(ctx context.Context, batch *core.Batch) error {
	if p.err != nil {
		return p.err
	}
	return p.Bound.Take(ctx, batch)
}

func (p *probed) Grant(context.Context, *core.Batch) error          { return p.err }
func (p *probed) Beside(rules []core.StoreRule) (core.Bound, error) { return p.beside() }

// An open circuit lets one operation at a time try the store. Whatever becomes of the operation, the next one
// may try again.
func TestEveryProbeEnds(t *testing.T) {
	errBeside := errors.New("it cannot do that")
	for name, row := range map[string]struct {
		away   bool // while the store is tried
		beside func() (core.Bound, error)
		try    func(t *testing.T, b *bound)
	}{
		"a grant that finds hits of the outage": {away: true, try: func(t *testing.T, b *bound) {
			if err := b.Grant(t.Context(), newHit()); !errors.Is(err, errAway) || !errors.Is(err, core.ErrNotCharged) {
				t.Errorf("got %v, want %v", err, errAway)
			}
		}},
		"a payment in which the store panics": {beside: func() (core.Bound, error) { panic("fault of the store") }, try: func(t *testing.T, b *bound) {
			if err := b.payDue(t.Context(), []*claim{b.owed.claim(&newHit().Items[0])}); !errors.Is(err, errPanicked) {
				t.Errorf("got %v, want %v", err, errPanicked)
			}
		}},
		"a payment that cannot be divided": {beside: func() (core.Bound, error) { return nil, errBeside }, try: func(t *testing.T, b *bound) {
			if err := b.payDue(t.Context(), []*claim{b.owed.claim(&newHit().Items[0])}); !errors.Is(err, errBeside) {
				t.Errorf("got %v, want %v", err, errBeside)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bindOne(t, 10)
				inner := &probed{b.inner, errAway, row.beside}
				b.inner = inner
				hit(t, b)
				for range 1000 {
					_ = b.Take(t.Context(), newHit())
				}
				if b.circuits.up() {
					t.Fatal("the circuit is closed")
				}
				time.Sleep(2 * time.Second)
				// The hits of before the outage are lost: the store is charged with them as far as they fit.
				it := &newHit().Items[0]
				b.owed.remove(b.owed.key(it))
				b.owed.add(b.owed.key(it), debt{until: b.now() + 1_000_000_000}, "", true, b.now())
				if !row.away {
					inner.err = nil
				}
				row.try(t, b)
				inner.err, inner.beside = nil, func() (core.Bound, error) { return nil, nil }
				time.Sleep(2 * time.Second)
				batch := newHit()
				if err := b.Take(t.Context(), batch); err != nil || batch.Degraded && !b.circuits.up() {
					t.Errorf("degraded: %t, %v, up: %t: want that the store is asked again", batch.Degraded, err, b.circuits.up())
				}
			})
		})
	}
}
