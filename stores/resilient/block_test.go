package resilient_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A block holds in the store, and in this process while the store does not answer.
func TestABlockHoldsInAnOutage(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	inner := &blocking{flaky: newFlaky(t, clock.Now)}
	l := newLimiter(t, newStore(t, inner, resilient.Config{Clock: clock.Now}), 5)
	alice := core.Hit{Rule: "user", Key: "alice"}
	if err := l.Block(t.Context(), time.Hour, alice); err != nil {
		t.Fatal(err)
	}
	denied := func(what string, want bool) {
		t.Helper()
		if d, err := take(l); err != nil || d.Allowed == want {
			t.Errorf("%s: %v, %v, want denied %t", what, d, err, want)
		}
	}
	denied("blocked", true)
	inner.fail(errGone)
	denied("in an outage", true)
	if err := l.Block(t.Context(), 0, alice); !errors.Is(err, errGone) && !errors.Is(err, resilient.ErrDown) {
		t.Errorf("the end of a block in an outage: %v", err)
	}
	denied("ended here", false)
}

func TestAStoreThatCannotBlock(t *testing.T) {
	l := newLimiter(t, newStore(t, newFlaky(t, nil), resilient.Config{}), 5)
	alice := core.Hit{Rule: "user", Key: "alice"}
	for name, err := range map[string]error{"Block": l.Block(t.Context(), time.Hour, alice), "ResetAll": l.ResetAll(t.Context())} {
		if !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d, err := take(l); err != nil || !d.Allowed {
		t.Errorf("the process has blocked what the store cannot: %v, %v", d, err)
	}
}

func TestResetAllForgetsHereAndThere(t *testing.T) {
	inner := &blocking{flaky: newFlaky(t, nil)}
	l := newLimiter(t, newStore(t, inner, resilient.Config{}), 1)
	for range 2 {
		if d, err := take(l); err != nil || !d.Allowed {
			t.Errorf("%v, %v", d, err)
		}
		if err := l.ResetAll(t.Context()); err != nil {
			t.Error(err)
		}
	}
	inner.fail(errGone)
	if d, err := take(l); err != nil || !d.Allowed {
		t.Errorf("in an outage: %v, %v", d, err)
	}
}

// blocking is a flaky store that can block.
type blocking struct{ *flaky }

type blockingBound struct {
	flakyBound
	inner core.Bound
}

func (b blockingBound) Block(ctx context.Context, batch *core.Batch, d time.Duration) error {
	return b.do(func() error { return b.inner.(core.Blocker).Block(ctx, batch, d) })
}

func (b blockingBound) ResetAll(ctx context.Context) error {
	return b.do(func() error { return b.inner.(core.ResetterOfAll).ResetAll(ctx) })
}

func (b *blocking) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	inner, err := b.Store.Bind(limiter, rules)
	return blockingBound{flakyBound{inner, b.flaky}, inner}, err
}

// flakyBlocks is an instance whose link fails, and whose circuit stays closed.
func flakyBlocks(t *testing.T, limits ...core.Limit) (*sums, *summed) {
	s := newSums(t, 1, true, resilient.Config{Failures: 1 << 30}, limits...)
	return s, s.instances[0]
}

func (i *summed) block(b *core.Batch, d time.Duration) error {
	return i.Bound.(core.Blocker).Block(context.Background(), b, d)
}

// The next request for the key tells the store of a block of an outage. Meanwhile this
// process denies the other requests.
func TestTheNextRequestTellsTheStoreOfABlock(t *testing.T) {
	for _, key := range []string{"k", strings.Repeat("k", 300)} {
		synctest.Test(t, func(t *testing.T) {
			s, i := flakyBlocks(t, fixed(6, year))
			i.link.fail(errRefused)
			if err := i.block(s.batch(key, 1, 0), 30*time.Second); !errors.Is(err, core.ErrDegraded) || !errors.Is(err, errRefused) || !strings.Contains(err.Error(), "in this process only") {
				t.Errorf("%v", err)
			}
			i.link.fail(nil)
			asked, goOn, done := make(chan struct{}), make(chan struct{}), make(chan *core.Batch)
			var first atomic.Bool
			i.link.slow.Store(func() {
				if first.CompareAndSwap(false, true) {
					close(asked)
					<-goOn
				}
			})
			go func() { done <- s.take(0, key, 1, 0) }()
			<-asked
			if b := s.take(0, key, 1, 0); b.Allowed || !b.Degraded {
				t.Errorf("while the store is being told: %+v", b)
			}
			close(goOn)
			if b := <-done; b.Allowed || b.Degraded {
				t.Errorf("the store has been told: %+v", b)
			}
			if r := s.look(key); r.RetryAfter != 30*time.Second {
				t.Errorf("the store shows %+v", r)
			}
		})
	}
}

// A Reset, a ResetAll and another Block are not overtaken by what the store is being told of an
// earlier block.
func TestABlockThatIsBeingTold(t *testing.T) {
	for name, row := range map[string]struct {
		do   func(s *sums, i *summed) error
		want time.Duration
	}{
		"Reset":    {func(s *sums, i *summed) error { return i.Reset(context.Background(), s.batch("k", 1, 0)) }, 0},
		"Block":    {func(s *sums, i *summed) error { return i.block(s.batch("k", 1, 0), 10*time.Second) }, 10 * time.Second},
		"no Block": {func(s *sums, i *summed) error { return i.block(s.batch("k", 1, 0), 0) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, i := flakyBlocks(t, fixed(6, year))
				i.link.fail(errRefused)
				_ = i.block(s.batch("k", 1, 0), 30*time.Second)
				i.link.fail(nil)
				asked, goOn := make(chan struct{}), make(chan struct{})
				var first atomic.Bool
				i.link.slow.Store(func() {
					if first.CompareAndSwap(false, true) {
						close(asked)
						<-goOn
					}
				})
				took, done := make(chan struct{}), make(chan error, 1)
				go func() { s.take(0, "k", 1, 0); close(took) }()
				<-asked
				go func() { done <- row.do(s, i) }()
				synctest.Wait()
				close(goOn)
				if err := <-done; err != nil {
					t.Error(err)
				}
				<-took
				time.Sleep(time.Second)
				if r := s.look("k"); r.RetryAfter != max(0, row.want-time.Second) {
					t.Errorf("the store shows %+v, want a block of %v", r, row.want)
				}
			})
		})
	}
}

// What ends a block in an outage ends it here, and says that the store may still have it. A
// block that the store never heard of ends everywhere.
func TestTheEndOfABlockInAnOutage(t *testing.T) {
	for name, end := range map[string]func(s *sums, i *summed) error{
		"Reset": func(s *sums, i *summed) error { return i.Reset(context.Background(), s.batch("k", 1, 0)) },
		"Block": func(s *sums, i *summed) error { return i.block(s.batch("k", 1, 0), 0) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s, i := flakyBlocks(t, fixed(6, year))
			i.link.fail(errRefused)
			_ = i.block(s.batch("k", 1, 0), time.Hour)
			if err := end(s, i); !errors.Is(err, core.ErrDegraded) || !strings.Contains(err.Error(), "again when it answers") {
				t.Errorf("%s: %v", name, err)
			}
			if !s.take(0, "k", 1, 0).Allowed {
				t.Errorf("%s: the block has not ended here", name)
			}
			i.link.fail(nil)
			time.Sleep(5 * time.Second)
			if r := s.look("k"); r.RetryAfter != 0 || r.Remaining != 5 {
				t.Errorf("%s: the store shows %+v", name, r)
			}
		})
	}
}

// Without counters in the process, a block of an outage holds nowhere, and the error is the store's.
func TestABlockThatHoldsNowhere(t *testing.T) {
	for _, mode := range []resilient.Mode{resilient.ModeOpen, resilient.ModeClosed} {
		inner := &blocking{flaky: newFlaky(t, nil)}
		l := newLimiter(t, newStore(t, inner, resilient.Config{Meanwhile: mode}), 5)
		alice := core.Hit{Rule: "user", Key: "alice"}
		inner.fail(errGone)
		for what, err := range map[string]error{"Block": l.Block(t.Context(), time.Hour, alice), "Reset": l.Reset(t.Context(), alice), "ResetAll": l.ResetAll(t.Context())} {
			if !errors.Is(err, errGone) || errors.Is(err, core.ErrDegraded) {
				t.Errorf("%v, %s: %v", mode, what, err)
			}
		}
		inner.fail(nil)
		if d, err := take(l); err != nil || !d.Allowed {
			t.Errorf("%v: %v, %v", mode, d, err)
		}
	}
}

// A client that hangs up does not keep a key from being blocked.
func TestABlockOfAClientThatHangsUp(t *testing.T) {
	inner := &blocking{flaky: newFlaky(t, nil)}
	l := newLimiter(t, newStore(t, inner, resilient.Config{}), 5)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Block(gone, time.Hour, core.Hit{Rule: "user", Key: "alice"}); err != nil {
		t.Error(err)
	}
}
