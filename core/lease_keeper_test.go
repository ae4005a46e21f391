package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// shared is a Memory that says that other processes count in it too, so that leases are
// renewed. It fails on demand.
type shared struct {
	around
	mu             sync.Mutex
	renews, items  int
	releases       int
	released       int // items
	fail, failTake error
	renewing       func()
}

func newShared(t testing.TB) *shared {
	t.Helper()
	m, err := core.NewMemory(core.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := new(shared)
	s.around = around{m, s.lease}
	return s
}

func (s *shared) Guarantees() core.Guarantees {
	return core.Guarantees{Ops: core.AllOps, Exact: true, Shared: true}
}

func (s *shared) lease(ctx context.Context, c core.Counters, b *core.Batch) error {
	s.mu.Lock()
	fail, failTake, hook := s.fail, s.failTake, s.renewing
	switch b.Op {
	case core.OpRelease:
		s.releases++
		s.released += len(b.Items)
	case core.OpRenew:
		s.renews++
		s.items += len(b.Items)
	}
	s.mu.Unlock()
	switch b.Op {
	case core.OpTake, core.OpPeek:
		return errors.Join(c.Do(ctx, b), failTake)
	case core.OpRenew:
		if hook != nil {
			hook()
		}
	case core.OpRelease:
	default:
		fail = nil
	}
	if fail != nil {
		return fail
	}
	return c.Do(ctx, b)
}

func (s *shared) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// A lease is renewed when a third of it is over, however many others come.
func TestLeasesAreRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		l := inFlight(t, 100, store)
		const third = core.DefaultLease / 3
		var releases []func()
		for i := range 12 {
			_, release := acquire(t, l, ann)
			releases = append(releases, release)
			time.Sleep(third / 4)
			synctest.Wait()
			if want := (i + 1) / 4; store.renews < want || i < 3 && store.renews > 0 {
				t.Errorf("after %d quarters of a third of a lease: %d renewals, want %d", i+1, store.renews, want)
			}
		}
		for _, release := range releases {
			release()
		}
		if got := l.Stats().Failed; got != 0 {
			t.Errorf("%d failures are counted", got)
		}
	})
}

// Leases are given back in the background together, as many as are remembered. The
// others lapse.
func TestLostLeasesAreReleasedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, one = 10_000, 1
		store := newShared(t)
		l := inFlight(t, most, store)
		var releases []func()
		for i := range most + one {
			hit := core.Hit{Rule: "user", Key: fmt.Sprint("user ", i)}
			if i >= most {
				hit = ann
			}
			_, release := acquire(t, l, hit)
			releases = append(releases, release)
		}
		store.set(func() { store.fail = errors.New("gone") })
		for _, release := range releases {
			release()
		}
		time.Sleep(40 * time.Millisecond)
		store.set(func() {
			if store.releases != most+one {
				t.Errorf("after 40 ms: %d releases, want %d", store.releases, most+one)
			}
			store.fail = nil
		})
		time.Sleep(3 * time.Second)
		remaining(t, l, most-one, "after three seconds")
		if got := store.releases - most - one; got != most/1000 {
			t.Errorf("%d releases in the background, want %d", got, most/1000)
		}
		time.Sleep(core.DefaultLease)
		remaining(t, l, most, "after a lease")
	})
}

// A release names what the lease was given for, and no other key of the request.
func TestOnlyWhatWasTakenIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		free := func(core.Request) (int64, error) { return 0, nil }
		l, err := core.New(core.Config{Name: "api", Store: store, Rules: []core.Rule{
			{Name: "user", Key: static("ann"), Limits: []core.Limit{core.InFlight(1)}},
			{Name: "upload", Key: static("ann"), Limits: []core.Limit{core.InFlight(1)}, Cost: free},
		}})
		if err != nil {
			t.Fatal(err)
		}
		release, held := l.Check(&request{}).Hold()
		if !held {
			t.Fatal("nothing is held")
		}
		release()
		if store.released != 1 {
			t.Errorf("%d items were released, want 1", store.released)
		}
	})
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

// A renewal that fails is repeated before the lease lapses.
func TestARenewalThatFailsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		l := inFlight(t, 1, store)
		_, release := acquire(t, l, ann)
		store.set(func() { store.fail = errors.New("gone") })
		time.Sleep(core.DefaultLease/3 + time.Millisecond)
		synctest.Wait()
		time.Sleep(core.DefaultLease / 3)
		synctest.Wait()
		if store.renews < 4 {
			t.Errorf("%d renewals in two thirds of a lease", store.renews)
		}
		store.set(func() { store.fail = nil })
		time.Sleep(core.DefaultLease)
		remaining(t, l, 0, "after a renewal has failed")
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
		if got := l.Stats().Failed; got != 1 {
			t.Errorf("%d failures are counted, want that of the release", got)
		}
		time.Sleep(3 * time.Second)
		store.set(func() {
			if store.releases < 3 || store.releases > 5 {
				t.Errorf("%d releases in three seconds, want about one a second", store.releases)
			}
			store.fail = nil
		})
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
