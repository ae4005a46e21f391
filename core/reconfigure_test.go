package core_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func oneRule(limits ...core.Limit) core.Config {
	return core.Config{Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: limits}}}
}

func TestReconfigure(t *testing.T) {
	l := newLimiter(t, oneRule(core.PerMinute(5)), newClock())
	l.Check(&request{})
	if err := l.Reconfigure(oneRule(core.PerMinute(10), core.PerHour(3))); err != nil {
		t.Fatal(err)
	}
	d := l.Check(&request{})
	var got []int64
	for s := range d.Limits() {
		got = append(got, s.Remaining)
	}
	if len(got) != 2 || got[0] != 8 || got[1] != 2 {
		t.Errorf("left %v, want 8 of the limit that stayed and 2 of the new one", got)
	}

	for name, c := range map[string]core.Config{
		"another name":  {Name: "other", Rules: oneRule(core.PerMinute(1)).Rules},
		"another store": {Store: core.Must(core.NewMemory(core.MemoryConfig{})), Rules: oneRule(core.PerMinute(1)).Rules},
		"no rules":      {},
	} {
		if err := l.Reconfigure(c); !errors.Is(err, core.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if d := l.Check(&request{}); !d.Allowed || d.Remaining != 1 {
		t.Errorf("after changes that were errors: %v", d)
	}
}

// A rule that is removed takes its blocks with it: another rule that has the same keys is not blocked, nor is
// the rule itself if it comes back.
func TestReconfigureEndsTheBlocksOfARuleThatItRemoves(t *testing.T) {
	rules := func(names ...string) (c core.Config) {
		for _, name := range names {
			c.Rules = append(c.Rules, core.Rule{Name: name, Limits: []core.Limit{core.PerMinute(5)}})
		}
		return c
	}
	for _, next := range []string{"removed", "new"} {
		l := newLimiter(t, rules("stays", "removed"), newClock())
		if err := l.Block(t.Context(), time.Hour, core.Hit{Rule: "stays", Key: "k"}, core.Hit{Rule: "removed", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []core.Config{rules("stays"), rules("stays", next)} {
			if err := l.Reconfigure(c); err != nil {
				t.Fatal(err)
			}
		}
		if !l.Allow(t.Context(), core.Hit{Rule: next, Key: "k"}) {
			t.Errorf("a key of rule %q is blocked", next)
		}
		if l.Allow(t.Context(), core.Hit{Rule: "stays", Key: "k"}) {
			t.Errorf("with rule %q: the block of the rule that stays has ended", next)
		}
	}
}

// Exactly as many are allowed as the highest quota allows, while
// the limits change all the time.
func TestReconfigureUnderLoad(t *testing.T) {
	l := newLimiter(t, oneRule(core.PerHour(500)), newClock())
	var allowed atomic.Int64
	done := make(chan struct{})
	var changes sync.WaitGroup
	changes.Go(func() {
		for i := int64(0); ; i++ {
			select {
			case <-done:
				return
			default:
			}
			limits := []core.Limit{core.PerHour(500)}
			if i%2 == 0 {
				limits = append(limits, core.Limit{Quota: 1000 + i, Window: 24 * time.Hour}, core.Limit{Quota: 1000, Window: time.Hour, Algorithm: core.SlidingLog})
			}
			if err := l.Reconfigure(oneRule(limits...)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 50 {
				if l.Check(&request{}).Allowed {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	close(done)
	changes.Wait()
	if got := allowed.Load(); got != 500 {
		t.Errorf("%d allowed, want 500", got)
	}
}

// reopening is a store that notices whether two Reopens overlap.
type reopening struct {
	core.Store
	core.Counters
	inside   atomic.Int32
	overlaps atomic.Int32
}

func (s *reopening) Open(limiter string, rules []core.StoreRule) (_ core.Counters, err error) {
	s.Counters, err = s.Store.Open(limiter, rules)
	return s, err
}

func (s *reopening) Reopen([]core.StoreRule) (core.Counters, error) {
	if s.inside.Add(1) > 1 {
		s.overlaps.Add(1)
	}
	for range 10 {
		runtime.Gosched()
	}
	s.inside.Add(-1)
	return s, nil
}

// If two Reconfigures overlapped, the limiter could end with the rules of the
// one and a store that has been prepared for those of the other.
func TestReconfiguresDoNotOverlap(t *testing.T) {
	s := &reopening{Store: core.Must(core.NewMemory(core.MemoryConfig{}))}
	c := oneRule(core.PerHour(5))
	c.Name, c.Store = "l", s
	l := newLimiter(t, c, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if err := l.Reconfigure(oneRule(core.PerHour(5))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := s.overlaps.Load(); n > 0 {
		t.Errorf("%d times a Reconfigure began before another one had ended", n)
	}
}

func ExampleLimiter_Reconfigure() {
	limiter := core.Must(core.New(oneRule(core.PerMinute(5))))
	limiter.Check(&request{})
	// The quota changes, the count stays.
	_ = limiter.Reconfigure(oneRule(core.PerMinute(100)))
	fmt.Println(limiter.Check(&request{}).Remaining)
	// Output: 98
}
