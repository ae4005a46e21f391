package login_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/login"
)

// obedient is a Memory that does nothing for a context that has ended, as a store with a
// network does.
type obedient struct {
	*core.Memory
	after func(limiter string, batch *core.Batch) // an operation; nil: nothing
}

type obedientCounters struct {
	core.Counters
	store   *obedient
	limiter string
}

func newObedient(clock *storetest.Clock) *obedient {
	return &obedient{Memory: core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))}
}

func (s *obedient) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := s.Memory.Open(limiter, rules)
	return obedientCounters{c, s, limiter}, err
}

func (c obedientCounters) Do(ctx context.Context, batch *core.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := c.Counters.Do(ctx, batch)
	if c.store.after != nil {
		c.store.after(c.limiter, batch)
	}
	return err
}

// The client may leave as soon as it has the response.
func TestAnAddressIsRememberedAlthoughTheContextHasEnded(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	s := newSiteAt(t, clock, login.Config{Store: newObedient(clock)})
	r := form("203.0.113.1", "alice")
	ctx, cancel := context.WithCancel(t.Context())
	r.ctx = ctx
	d := s.guard.Check(r)
	cancel()
	s.guard.Settle(r, d, core.Outcome{Status: http.StatusOK})
	if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1"); err != nil || !st.KnownAddress {
		t.Errorf("%+v, %v", st, err)
	}
}
