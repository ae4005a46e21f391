package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// shared is a Memory that says that other processes count in it too, so that leases are
// renewed. It fails on demand.
type shared struct {
	core.Store
	mu             sync.Mutex
	renews, items  int
	releases       int
	fail, failTake error
	renewing       func()
}

func newShared(t testing.TB) *shared {
	t.Helper()
	m, err := core.NewMemory(core.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return &shared{Store: m}
}

func (s *shared) Traits() core.Traits { return core.Traits{Exact: true} }

func (s *shared) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.Store.Bind(limiter, rules)
	return sharedBound{b, s}, err
}

type sharedBound struct {
	core.Bound
	s *shared
}

func (b sharedBound) Take(ctx context.Context, batch *core.Batch) error {
	b.s.mu.Lock()
	fail := b.s.failTake
	b.s.mu.Unlock()
	return errors.Join(b.Bound.Take(ctx, batch), fail)
}

func (b sharedBound) Release(ctx context.Context, batch *core.Batch) error {
	b.s.mu.Lock()
	b.s.releases++
	fail := b.s.fail
	b.s.mu.Unlock()
	if fail != nil {
		return fail
	}
	return b.Bound.(core.Leaser).Release(ctx, batch)
}

func (b sharedBound) Renew(ctx context.Context, batch *core.Batch) error {
	b.s.mu.Lock()
	b.s.renews++
	b.s.items += len(batch.Items)
	fail, hook := b.s.fail, b.s.renewing
	b.s.mu.Unlock()
	if hook != nil {
		hook()
	}
	if fail != nil {
		return fail
	}
	return b.Bound.(core.Leaser).Renew(ctx, batch)
}

func (s *shared) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func TestLeasesAreRenewedTogetherWhileTheyAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		l := inFlight(t, 10, store)
		_, a := acquire(t, l, ann)
		_, b := acquire(t, l, ann)
		time.Sleep(5 * core.DefaultLease)
		synctest.Wait()
		remaining(t, l, 8, "after five leases")
		if store.renews > 16 || store.items != 2*store.renews {
			t.Errorf("%d renewals of %d leases, want 15 of 30", store.renews, store.items)
		}
		a()
		b()
		remaining(t, l, 10, "after the release")
		seen := store.renews
		time.Sleep(5 * core.DefaultLease)
		synctest.Wait()
		if store.renews != seen {
			t.Errorf("%d renewals of nothing", store.renews-seen)
		}
	})
}

// A process that has stood still for longer than a lease counts again.
func TestARenewalCountsAfterTheLeaseHasLapsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		l := inFlight(t, 1, store)
		_, release := acquire(t, l, ann)
		store.set(func() { store.fail = errors.New("gone") })
		time.Sleep(2 * core.DefaultLease)
		remaining(t, l, 1, "without renewals")
		store.set(func() { store.fail = nil })
		time.Sleep(core.DefaultLease)
		remaining(t, l, 0, "after a renewal")
		release()
		remaining(t, l, 1, "after the release")
	})
}

func TestAReleaseThatFailsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		l := inFlight(t, 1, store)
		_, release := acquire(t, l, ann)
		store.set(func() { store.fail = errors.New("gone") })
		release()
		remaining(t, l, 0, "after a release that has failed")
		time.Sleep(3 * time.Second)
		store.set(func() { store.fail = nil })
		time.Sleep(3 * time.Second)
		remaining(t, l, 1, "after the store has come back")
	})
}

// A renewal that arrives after the release would hold the slot for another lease.
func TestALeaseThatIsReleasedDuringItsRenewalIsReleasedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		l := inFlight(t, 1, store)
		_, release := acquire(t, l, ann)
		store.set(func() { store.renewing = release })
		time.Sleep(core.DefaultLease)
		synctest.Wait()
		remaining(t, l, 1, "after the release")
	})
}

// What a lost reply to an Acquire has taken is given back soon.
func TestALostReplyToAnAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		l := inFlight(t, 1, store)
		store.set(func() { store.failTake = errors.New("no reply") })
		_, release, err := l.Acquire(t.Context(), ann)
		if err == nil {
			t.Fatal("no error")
		}
		release()
		store.set(func() { store.failTake = nil })
		remaining(t, l, 0, "after the lost reply")
		time.Sleep(time.Second)
		remaining(t, l, 1, "a second later")
	})
}
