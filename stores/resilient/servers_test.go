package resilient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/denycache"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// spread is a store of two servers: a key is on the one that it begins with.
type spread struct {
	core.Store
	down  atomic.Pointer[string] // the server that fails
	named bool                   // its error names it
	mu    sync.Mutex
	asked map[string]int
}

func (s *spread) askedOf(server string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[server]
}

func (s *spread) Traits() core.Traits { return core.Must(core.TraitsOf(s.Store)) }

func (s *spread) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.Store.Bind(limiter, rules)
	return spreadBound{b, s}, err
}

type spreadBound struct {
	core.Bound
	s *spread
}

func (spreadBound) ServerOf(_ int, key []byte) string { return string(key[:1]) }

func (b spreadBound) Take(ctx context.Context, batch *core.Batch) error {
	down := b.s.down.Load()
	for i := range batch.Items {
		server := string(batch.Items[i].Key[:1])
		b.s.mu.Lock()
		b.s.asked[server]++
		b.s.mu.Unlock()
		if down == nil || server != *down {
			continue
		}
		if b.s.named {
			return fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Addr: address(server), Err: errGone})
		}
		return errors.New("no answer in time")
	}
	return b.Bound.Take(ctx, batch)
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func TestEachServerHasACircuit(t *testing.T) {
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprintf("named %v", named), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &spread{Store: core.Must(core.NewMemory(core.MemoryConfig{})), named: named, asked: map[string]int{}}
				var changes []resilient.Change
				store := newStore(t, core.Must(denycache.New(s, denycache.Config{})), resilient.Config{
					Failures: 3, OnChange: func(c resilient.Change) { changes = append(changes, c) },
				})
				l := core.Must(core.New(core.Config{Name: "l", Store: store, Rules: []core.Rule{
					{Name: "x", Limits: []core.Limit{core.PerHour(1000)}},
					{Name: "y", Limits: []core.Limit{core.PerHour(1000)}},
				}}))
				degraded := func(keys ...string) bool {
					t.Helper()
					hits := []core.Hit{{Rule: "x", Key: keys[0]}}
					if len(keys) > 1 {
						hits = append(hits, core.Hit{Rule: "y", Key: keys[1]})
					}
					d, err := l.Take(context.Background(), 1, hits...)
					if err != nil || !d.Allowed {
						t.Fatalf("%v, %v", d, err)
					}
					return d.Degraded
				}
				a := "A"
				s.down.Store(&a)
				for i := range 10 {
					if !degraded("A1") {
						t.Errorf("take %d of the server that is down: decided by it", i)
					}
					if degraded("B1") {
						t.Errorf("take %d of the other server: decided in the process", i)
					}
				}
				if s.askedOf("A") != 3 {
					t.Errorf("the server that is down was asked %d times, want 3", s.askedOf("A"))
				}
				for range 20 { // keys of both, probes among them
					if !degraded("A1", "B1") || degraded("B1") {
						t.Error("keys of both servers, then of the one that works: decided by the wrong side")
					}
					time.Sleep(time.Second)
				}
				if len(changes) != 1 || changes[0].Server != "A" || store.Up() {
					t.Errorf("changes %+v, up %v; want that A is down", changes, store.Up())
				}
				s.down.Store(nil)
				time.Sleep(2 * time.Second)
				if degraded("B1", "A1") || degraded("A1") || !store.Up() {
					t.Error("A is back, and not asked")
				}
			})
		})
	}
}

func TestTheLogNamesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &spread{Store: core.Must(core.NewMemory(core.MemoryConfig{})), named: true, asked: map[string]int{}}
		l := newLimiter(t, newStore(t, s, resilient.Config{Failures: 1, Log: slog.New(slog.NewTextHandler(&log, nil))}), 10)
		hit := func() {
			if _, err := l.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "A1"}); err != nil {
				t.Fatal(err)
			}
		}
		a := "A"
		s.down.Store(&a)
		hit()
		s.down.Store(nil)
		time.Sleep(2 * time.Second)
		hit()
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "do not answer\" server=A ") || !strings.HasSuffix(lines[1], "answer again\" server=A") {
			t.Errorf("logged\n%s", &log)
		}
	})
}

// A failure of keys on several servers that names none gives all of them up: who
// was at fault shows when each is tried.
func TestAFailureThatNamesNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spread{Store: core.Must(core.NewMemory(core.MemoryConfig{})), asked: map[string]int{}}
		store := newStore(t, s, resilient.Config{Failures: 1})
		l := core.Must(core.New(core.Config{Name: "l", Store: store, Rules: []core.Rule{
			{Name: "x", Limits: []core.Limit{core.PerHour(1000)}},
			{Name: "y", Limits: []core.Limit{core.PerHour(1000)}},
		}}))
		a := "A"
		s.down.Store(&a)
		both := []core.Hit{{Rule: "x", Key: "B1"}, {Rule: "y", Key: "A1"}}
		_, _ = l.Take(context.Background(), 1, both...)
		if d, err := l.Take(context.Background(), 1, both[0]); err != nil || !d.Degraded {
			t.Errorf("%v, %v: B has not been given up", d, err)
		}
		time.Sleep(2 * time.Second)
		if d, err := l.Take(context.Background(), 1, both[0]); err != nil || d.Degraded {
			t.Errorf("%v, %v: B is not tried again", d, err)
		}
		// Now B is known to work: what fails is put down to A, which is being tried.
		for range 5 {
			_, _ = l.Take(context.Background(), 1, both...)
			if d, err := l.Take(context.Background(), 1, both[0]); err != nil || d.Degraded {
				t.Errorf("%v, %v: B has been given up for a failure of A", d, err)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// A server is probed again if its probe came to nothing because another server,
// which the same operation needed, was down.
func TestAProbeThatWasNotSentIsNotUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spread{Store: core.Must(core.NewMemory(core.MemoryConfig{})), asked: map[string]int{}}
		take := spreadTake(t, newStore(t, s, resilient.Config{Meanwhile: resilient.ModeOpen, Failures: 1, Retry: time.Second})) // owes nothing
		a, b := "A", "B"
		s.down.Store(&a)
		take("A1")
		time.Sleep(time.Second)
		s.down.Store(&b)
		take("B1")
		time.Sleep(500 * time.Millisecond) // A may be probed now, and B not yet
		asked := s.askedOf("A")
		if !take("A1", "B1") || s.askedOf("A") != asked {
			t.Errorf("an operation on a server that is down: A was asked %d times, want 0", s.askedOf("A")-asked)
		}
		if take("A2") || s.askedOf("A") != asked+1 {
			t.Errorf("A was asked %d times after that, want a probe", s.askedOf("A")-asked)
		}
	})
}

// An error that names a server is put down to that one, even if another was
// being tried.
func TestAProbeIsNotBlamedForAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spread{Store: core.Must(core.NewMemory(core.MemoryConfig{})), named: true, asked: map[string]int{}}
		take := spreadTake(t, newStore(t, s, resilient.Config{Meanwhile: resilient.ModeOpen, Failures: 1, Retry: time.Second})) // owes nothing
		a, b := "A", "B"
		s.down.Store(&a)
		take("A1")
		time.Sleep(2 * time.Second)
		s.down.Store(&b)
		if !take("A1", "B1") {
			t.Error("decided by a server that is down")
		}
		s.down.Store(nil)
		if !take("B1") {
			t.Error("the server that the error named has not been given up")
		}
		if take("A1") {
			t.Error("the server that was being tried has been given up for a failure of the other")
		}
	})
}

// spreadTake returns a function that takes a hit of keys, and returns whether
// that was decided in the process.
func spreadTake(t *testing.T, store core.Store) func(keys ...string) (degraded bool) {
	l := core.Must(core.New(core.Config{Name: "l", Store: store, Rules: []core.Rule{
		{Name: "x", Limits: []core.Limit{core.PerHour(1000)}},
		{Name: "y", Limits: []core.Limit{core.PerHour(1000)}},
	}}))
	return func(keys ...string) bool {
		t.Helper()
		var hits []core.Hit
		for i, key := range keys {
			hits = append(hits, core.Hit{Rule: []string{"x", "y"}[i], Key: key})
		}
		d, err := l.Take(context.Background(), 1, hits...)
		if err != nil {
			t.Fatal(err)
		}
		return d.Degraded
	}
}

// A failure of keys on several servers that names one gives up that one.
func TestAFailureThatNamesAServer(t *testing.T) {
	s := &spread{Store: core.Must(core.NewMemory(core.MemoryConfig{})), named: true, asked: map[string]int{}}
	l := core.Must(core.New(core.Config{Name: "l", Store: newStore(t, s, resilient.Config{Failures: 1, Retry: time.Hour}), Rules: []core.Rule{
		{Name: "x", Limits: []core.Limit{core.PerHour(1000)}},
		{Name: "y", Limits: []core.Limit{core.PerHour(1000)}},
	}}))
	a := "A"
	s.down.Store(&a)
	_, _ = l.Take(context.Background(), 1, core.Hit{Rule: "x", Key: "B1"}, core.Hit{Rule: "y", Key: "A1"})
	for key, degraded := range map[string]bool{"A1": true, "B1": false} {
		if d, err := l.Take(context.Background(), 1, core.Hit{Rule: "x", Key: key}); err != nil || d.Degraded != degraded {
			t.Errorf("%s: %v, %v", key, d, err)
		}
	}
}
