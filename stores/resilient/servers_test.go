package resilient_test

import (
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

// spread is a store of several servers: a key is on the one that it begins with.
type spread struct {
	core.Store
	down  atomic.Pointer[string] // the servers that fail, "AB" for A and B
	named bool                   // the error names the server
	mu    sync.Mutex
	asked map[string]int
}

func newSpread(named bool) *spread {
	return &spread{Store: newServer(nil), named: named, asked: map[string]int{}}
}

func (s *spread) fail(servers string) { s.down.Store(&servers) }

func (s *spread) askedOf(server string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[server]
}

func (s *spread) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := s.Store.Open(limiter, rules)
	return spreadCounters{c, s}, err
}

type spreadCounters struct {
	core.Counters
	s *spread
}

func (spreadCounters) ServerOf(_ int, key []byte) string { return string(key[:1]) }

func (c spreadCounters) Do(ctx context.Context, b *core.Batch) error {
	down := c.s.down.Load()
	for i := range b.Items {
		server := string(b.Items[i].Key[:1])
		c.s.mu.Lock()
		c.s.asked[server]++
		c.s.mu.Unlock()
		switch {
		case down == nil || !strings.Contains(*down, server):
		case c.s.named:
			return fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Addr: address(server), Err: errGone})
		default:
			return &net.OpError{Op: "read", Err: errors.New("no answer in time")}
		}
	}
	return c.Counters.Do(ctx, b)
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// spreadTake returns a function that takes a hit of keys, and returns whether
// that was decided in the process.
func spreadTake(t *testing.T, store core.Store) func(keys ...string) (degraded bool) {
	names := []string{"x", "y", "z"}
	var rules []core.Rule
	for _, name := range names {
		rules = append(rules, core.Rule{Name: name, Limits: []core.Limit{core.PerHour(1000)}})
	}
	l := core.Must(core.New(core.Config{Name: "l", Store: store, Rules: rules}))
	return func(keys ...string) bool {
		t.Helper()
		var hits []core.Hit
		for i, key := range keys {
			hits = append(hits, core.Hit{Rule: names[i], Key: key})
		}
		return degraded(t, l, hits...)
	}
}

func TestEachServerHasACircuit(t *testing.T) {
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprintf("named %v", named), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSpread(named)
				var changes []resilient.Change
				var log strings.Builder
				store := newStore(t, core.Must(denycache.New(s, denycache.Config{})), resilient.Config{
					Failures: 3, OnChange: func(c resilient.Change) { changes = append(changes, c) }, Log: slog.New(slog.NewTextHandler(&log, nil)),
				})
				take := spreadTake(t, store)
				s.fail("A")
				for i := range 10 {
					if !take("A1") {
						t.Errorf("take %d of the server that is down: decided by it", i)
					}
					if take("B1") {
						t.Errorf("take %d of the other server: decided in the process", i)
					}
				}
				if s.askedOf("A") != 3 {
					t.Errorf("the server that is down was asked %d times, want 3", s.askedOf("A"))
				}
				for range 20 { // keys of several, tries among them
					if !take("A1", "B1", "C1") || take("B1", "C1") {
						t.Error("keys of all servers, then of those that work: decided by the wrong side")
					}
					time.Sleep(time.Second)
				}
				if len(changes) != 1 || changes[0].Server != "A" || store.Up() {
					t.Errorf("changes %+v, up %v; want that A is down", changes, store.Up())
				}
				s.fail("")
				time.Sleep(2 * time.Second)
				if take("B1", "A1", "A2") || take("A1") || !store.Up() {
					t.Error("A is back, and not asked")
				}
				if len(changes) != 2 || changes[1] != (resilient.Change{Server: "A", Up: true}) {
					t.Errorf("changes %+v", changes)
				}
				if got := log.String(); named && (strings.Count(got, "\n") != 2 || strings.Count(got, " limiter=l server=A") != 2) {
					t.Errorf("logged\n%s", got)
				}
			})
		})
	}
}

// A failure of keys on several servers counts against the one that the error names, and says nothing
// of the others. If it names none, it counts against all, until each has answered.
func TestWhichServerIsBlamed(t *testing.T) {
	for _, named := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := newSpread(named)
			take := spreadTake(t, newStore(t, s, resilient.Config{Failures: 1}))
			s.fail("A")
			take("B1", "A1", "C1")
			for key, want := range map[string]bool{"A1": true, "B1": !named, "C1": !named} {
				if take(key) != want {
					t.Errorf("named %v: %s: decided without the store %v, want %v", named, key, !want, want)
				}
			}
			time.Sleep(2 * time.Second)
			if take("B1") || take("C1") || !take("A1") {
				t.Errorf("named %v: decided by the wrong side after a try", named)
			}
		})
	}
	s := newSpread(true)
	take := spreadTake(t, newStore(t, s, resilient.Config{Failures: 2}))
	s.fail("AB")
	take("B1")
	take("A1", "B1")
	take("B1")
	if s.fail(""); !take("B1") {
		t.Error("the failure of A is an answer of B")
	}
}

// A reset of all keys is no server's, also for a caller in a hurry.
func TestAResetOfAllKeysOnSeveralServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := core.Must(newStore(t, newSpread(false), resilient.Config{}).Open("l", nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := c.Do(ctx, &core.Batch{Op: core.OpResetAll}); err != nil {
			t.Error(err)
		}
	})
}

// A server is tried again if a try came to nothing because another server,
// which the same operation needed, was down.
func TestATryThatWasNotSentIsNotUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(false)
		take := spreadTake(t, newStore(t, s, resilient.Config{Failures: 1, Retry: time.Second}))
		s.fail("A")
		take("A1")
		time.Sleep(time.Second)
		s.fail("B")
		take("B1")
		time.Sleep(500 * time.Millisecond) // A may be tried now, and B not yet
		asked := s.askedOf("A")
		if !take("A1", "B1") || s.askedOf("A") != asked {
			t.Errorf("an operation on a server that is down: A was asked %d times, want 0", s.askedOf("A")-asked)
		}
		if take("A2") || s.askedOf("A") != asked+1 {
			t.Errorf("A was asked %d times after that, want a try", s.askedOf("A")-asked)
		}
	})
}
