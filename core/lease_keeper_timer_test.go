package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// sharedMemory is a Memory that says that other processes count in it too.
type sharedMemory struct{ Store }

func (sharedMemory) Guarantees() Guarantees { return Guarantees{Ops: AllOps, Shared: true} }

func (s sharedMemory) Open(limiter string, rules []StoreRule) (Counters, error) {
	c, err := s.Store.Open(limiter, rules)
	return struct{ Counters }{c}, err // not the Memory's own, which needs no renewals
}

// The timer is armed while leases are held, and not after they have ended: a limiter
// that nobody uses any more does nothing.
func TestNothingToRenewArmsNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Must(New(Config{Name: "api", Store: sharedMemory{Must(NewMemory(MemoryConfig{}))}, Rules: []Rule{{Name: "r", Limits: []Limit{InFlight(1)}}}}))
		armed := func() bool {
			l.keeper.mu.Lock()
			defer l.keeper.mu.Unlock()
			return !l.keeper.due.IsZero()
		}
		_, release, err := l.Acquire(context.Background(), Hit{Rule: "r", Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * DefaultLease)
		synctest.Wait()
		if !armed() {
			t.Error("a lease is held, and the timer is not armed")
		}
		release()
		time.Sleep(DefaultLease)
		synctest.Wait()
		if armed() {
			t.Error("no lease is held, and the timer is armed")
		}
	})
}
