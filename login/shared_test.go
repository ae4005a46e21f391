package login_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// shared is a store that several guards of one process open by the same name,
// as guards in several processes do. It counts how often it is asked, and can
// be cut off.
type shared struct {
	*core.Memory
	mu     sync.Mutex
	opened map[string]core.Counters
	asked  map[string]*atomic.Int64
	gone   atomic.Bool
	only   string       // the limiter that is cut off; "": all
	left   atomic.Int64 // how many questions it still answers when it is cut off
	once   atomic.Bool  // it fails once
}

func newShared(t *testing.T, c core.MemoryConfig) *shared {
	t.Helper()
	m, err := core.NewMemory(c)
	if err != nil {
		t.Fatal(err)
	}
	return &shared{Memory: m, opened: map[string]core.Counters{}, asked: map[string]*atomic.Int64{}}
}

func (s *shared) Guarantees() core.Guarantees { return remote }

func (s *shared) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.opened[limiter]; c != nil {
		return c, nil
	}
	c, err := s.Memory.Open(limiter, rules)
	if err != nil {
		return nil, err
	}
	s.asked[limiter] = new(atomic.Int64)
	s.opened[limiter] = sharedCounters{c, s, limiter, s.asked[limiter]}
	return s.opened[limiter], nil
}

type sharedCounters struct {
	core.Counters
	s       *shared
	limiter string
	asked   *atomic.Int64
}

func (c sharedCounters) Do(ctx context.Context, batch *core.Batch) error {
	c.asked.Add(1)
	if c.s.gone.Load() && (c.s.only == "" || c.s.only == c.limiter) && c.s.left.Add(-1) < 0 {
		c.s.gone.Store(!c.s.once.Load())
		return errGone
	}
	return c.Counters.Do(ctx, batch)
}
