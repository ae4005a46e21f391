package leasetest

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/processtest"
)

// lease is short, because the server measures it, and long enough for a busy machine to renew it.
const lease = 2 * time.Second

// quota is how many slots there are.
const quota = 3

var hit = core.Hit{Rule: "user", Key: "ann"}

// setup is two programs that share a server: one behind the proxy, and one that the network does not
// trouble.
type setup struct {
	*testing.T
	proxy            *faultproxy.Proxy
	store            core.Store // of troubled
	troubled, direct *core.Limiter
}

// Faults tests what faults of the network do. newStore returns a store of the server at an address, which is that of a proxy
// before addr, or addr. Its deadline must be a fifth of a second or less.
func Faults(t *testing.T, addr string, newStore func(t *testing.T, addr string) core.Store) {
	for name, test := range map[string]func(s *setup){
		"the reply to an acquire is lost":  (*setup).acquireIsLost,
		"an acquire arrives late":          (*setup).acquireIsLate,
		"the reply to a release is lost":   (*setup).releaseIsLost,
		"no release arrives":               (*setup).releaseNeverArrives,
		"a release arrives late":           (*setup).releaseIsLate,
		"the replies to renewals are lost": (*setup).renewalsAreLost,
		"closed while a renewal hangs":     (*setup).closedWhileRenewing,
		"all of that beside many requests": (*setup).soak,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &setup{T: t, proxy: faultproxy.Start(t, addr)}
			limiter := func(addr string) (*core.Limiter, core.Store) {
				store := newStore(t, addr)
				return core.Must(core.New(core.Config{
					Name: strings.ReplaceAll(name, " ", "-"), Store: store, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
					Rules: []core.Rule{{Name: "user", Limits: []core.Limit{{Quota: quota, Window: lease, Algorithm: core.Leases}}}},
				})), store
			}
			s.troubled, s.store = limiter(s.proxy.Addr)
			s.direct, _ = limiter(addr)
			test(s)
		})
	}
}

// acquire takes a slot. A decision that a busy machine has made impossible in time is made again.
func (s *setup) acquire(l *core.Limiter) (release func(), ok bool) {
	s.Helper()
	for range 20 {
		d, release, err := l.Acquire(context.Background(), hit)
		if err == nil {
			return release, d.Allowed
		}
	}
	s.Fatal("the store does not answer")
	return nil, false
}

func (s *setup) left() int64 {
	d, err := s.direct.Peek(context.Background(), 0, hit)
	if err != nil {
		return -1
	}
	return d.Remaining
}

// allFree waits until no slot is held.
func (s *setup) allFree(when string) {
	s.Helper()
	processtest.WaitFor(s, when, func() bool { return s.left() == quota })
}

// heal ends all faults. Connections that have lost a reply are cut.
func (s *setup) heal() {
	s.proxy.Fail(faultproxy.None, 0)
	s.proxy.Release()
	s.proxy.CutAll()
}

// eachFault calls f for each fault that loses replies.
func eachFault(f func(faultproxy.Fault)) {
	for _, fault := range []faultproxy.Fault{faultproxy.Cut, faultproxy.Swallow} {
		f(fault)
	}
}

// The limiter releases in the background what it may have got. If that does not succeed either, the slot is free
// after a lease.
func (s *setup) acquireIsLost() {
	eachFault(func(fault faultproxy.Fault) {
		for _, heals := range []bool{true, false} {
			s.proxy.Fail(fault, -1)
			d, release, err := s.troubled.Acquire(context.Background(), hit)
			if err == nil {
				s.Fatalf("no error: %v", d)
			}
			release()
			if heals {
				s.heal()
			}
			s.allFree("the slot to be free")
			s.heal()
		}
	})
}

// The acquire comes when the program has given up, and perhaps after the release. It holds a slot for
// a lease at most.
func (s *setup) acquireIsLate() {
	s.proxy.Stall()
	if _, _, err := s.troubled.Acquire(context.Background(), hit); err == nil {
		s.Fatal("no error")
	}
	s.proxy.Release()
	s.allFree("the slot to be free")
}

func (s *setup) releaseIsLost() {
	eachFault(func(fault faultproxy.Fault) {
		release, _ := s.acquire(s.troubled)
		s.proxy.Fail(fault, -1)
		release()
		s.heal()
		s.allFree("the slot to be free")
	})
}

// The slot is free after a lease, and not before.
func (s *setup) releaseNeverArrives() {
	release, _ := s.acquire(s.troubled)
	began := time.Now()
	s.proxy.Stall()
	release()
	for n := s.left(); n != quota; n = s.left() {
		if n != quota-1 && n != -1 {
			s.Fatalf("%d left", n)
		}
	}
	if took := time.Since(began); took < lease-lease/10 {
		s.Errorf("the slot is free after %v: it was never released", took)
	}
	s.proxy.CutAll() // what waits never arrives
}

// A release that comes when the lease is over ends no lease of others, which have the slots by then.
func (s *setup) releaseIsLate() {
	var late, others []func()
	for range quota {
		release, ok := s.acquire(s.troubled)
		if !ok {
			s.Fatal("denied")
		}
		late = append(late, release)
	}
	if _, ok := s.acquire(s.direct); ok {
		s.Fatal("a slot too many")
	}
	s.proxy.Stall()
	for _, release := range late {
		release()
	}
	s.allFree("the leases to lapse")
	for range quota {
		release, ok := s.acquire(s.direct)
		if !ok {
			s.Fatal("denied")
		}
		others = append(others, release)
	}
	s.proxy.Release()
	for range 20 { // what was late arrives
		if _, ok := s.acquire(s.direct); ok {
			s.Fatal("somebody else's slot was freed")
		}
		<-time.After(lease / 50)
	}
	for _, release := range others {
		release()
	}
	s.allFree("all slots to be free")
}

// A slot whose renewals are troubled, for less than a lease at a time, is held all the same.
func (s *setup) renewalsAreLost() {
	release, _ := s.acquire(s.troubled)
	for i := range 10 {
		s.proxy.Fail([]faultproxy.Fault{faultproxy.Cut, faultproxy.Swallow}[i%2], 1)
		<-time.After(lease / 3)
		if n := s.left(); n == quota {
			s.Error("the slot is free while it is held")
		}
	}
	s.heal()
	release()
	s.allFree("the slot to be free")
}

// Nobody waits for a renewal that hangs, and nothing goes on when the store is closed: TestMain looks for
// goroutines. The slot is free after a lease.
func (s *setup) closedWhileRenewing() {
	release, _ := s.acquire(s.troubled)
	s.proxy.Stall()
	<-time.After(lease/3 + lease/20) // a renewal is under way
	if err := s.store.(io.Closer).Close(); err != nil {
		s.Error(err)
	}
	release()
	s.allFree("the slot to be free")
	s.proxy.CutAll()
}

// Two programs take slots all the time. Never more than the quota are held, whatever happens to the
// commands of one.
func (s *setup) soak() {
	var running, allowed atomic.Int64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i := range 8 {
		l := []*core.Limiter{s.troubled, s.direct}[i%2]
		wg.Go(func() {
			for ended := false; !ended; {
				select {
				case <-stop:
					ended = true
				case <-time.After(time.Millisecond):
				}
				d, release, err := l.Acquire(context.Background(), hit)
				if err != nil || !d.Allowed {
					continue
				}
				allowed.Add(1)
				if n := running.Add(1); n > quota {
					s.Errorf("%d at a time", n)
				}
				<-time.After(5 * time.Millisecond)
				running.Add(-1)
				release()
			}
		})
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	for end := time.Now().Add(2 * lease); time.Now().Before(end); <-time.After(time.Duration(r.IntN(50)) * time.Millisecond) {
		switch r.IntN(6) {
		case 0:
			s.proxy.Fail(faultproxy.Cut, 1+r.IntN(3))
		case 1:
			s.proxy.Fail(faultproxy.Swallow, 1+r.IntN(3))
		case 2:
			s.proxy.Delay(time.Duration(r.IntN(300)) * time.Millisecond)
		case 3:
			s.proxy.Stall()
		case 4:
			s.proxy.Hold()
		case 5:
			s.proxy.Delay(0)
			s.heal()
		}
	}
	s.proxy.Delay(0)
	s.heal()
	close(stop)
	wg.Wait()
	if allowed.Load() == 0 {
		s.Error("nobody has got a slot")
	}
	s.allFree("all slots to be free")
	if s.Failed() {
		s.Logf("seed %d", seed)
	}
}
