package core_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func sharedStore(t *testing.T, maxKeys int, quotas ...int64) (*core.Memory, *core.Limiter) {
	t.Helper()
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: maxKeys, Clock: newClock().Now}))
	var rules []core.Rule
	for i, quota := range quotas {
		rules = append(rules, core.Rule{Name: fmt.Sprint("r", i), Limits: []core.Limit{core.PerHour(quota)}})
	}
	return m, newLimiter(t, core.Config{Store: m, Rules: rules}, nil)
}

func hitTimes(t *testing.T, l *core.Limiter, rule, key string, n int) {
	t.Helper()
	for range n {
		takeOf(t, l, rule, key)
	}
}

// A rule that holds fewer keys than its share loses none to a flood of keys on
// another rule, be the keys of the flood denied or not.
func TestAFloodTakesNoRoomFromRulesBelowTheirShare(t *testing.T) {
	for _, maxKeys := range []int{1000, 20_000} {
		for _, quota := range []int64{1, 3} {
			m, l := sharedStore(t, maxKeys, 2, quota)
			n := maxKeys/2 - 10
			for i := range n {
				hitTimes(t, l, "r0", fmt.Sprint(i), 1+i%2)
			}
			for i := range 4 * maxKeys {
				takeOf(t, l, "r1", fmt.Sprint("flood", i))
			}
			if m.Len() != maxKeys {
				t.Errorf("%d keys are held, want %d", m.Len(), maxKeys)
			}
			for i := range n {
				if got, want := left(t, l, "r0", fmt.Sprint(i)), int64(1-i%2); got != want {
					t.Fatalf("MaxKeys %d, a flood on a limit of %d: key %d of the other rule has %d hits left, want %d", maxKeys, quota, i, got, want)
				}
			}
		}
	}
}

// A rule that holds more than its share gives room to one that does not.
func TestARuleGetsItsShareBack(t *testing.T) {
	m, l := sharedStore(t, 1000, 5, 1)
	for i := range 3000 {
		takeOf(t, l, "r1", fmt.Sprint("flood", i))
	}
	for i := range 500 {
		takeOf(t, l, "r0", fmt.Sprint(i))
	}
	for i := range 500 {
		if got := left(t, l, "r0", fmt.Sprint(i)); got != 4 {
			t.Fatalf("key %d has %d hits left, want 4", i, got)
		}
	}
	if m.Len() != 1000 {
		t.Errorf("%d keys are held", m.Len())
	}
}

// Within a rule no denied key is evicted while there is a key that is not
// denied, however few of those there are.
func TestWithinARuleDeniedKeysGoLast(t *testing.T) {
	_, l := sharedStore(t, 1000, 2)
	for i := range 999 {
		hitTimes(t, l, "r0", fmt.Sprint(i), 3)
	}
	for i := range 20_000 {
		takeOf(t, l, "r0", fmt.Sprint("flood", i))
	}
	for i := range 999 {
		if takeOf(t, l, "r0", fmt.Sprint(i)) {
			t.Fatalf("key %d is not denied any more", i)
		}
	}
}

// Somebody who is denied under one username fills the store with made-up ones.
// He needs as many denied usernames as the rule's share of MaxKeys to get rid
// of his own counter.
func TestWhatReleasesADeniedUsername(t *testing.T) {
	const maxKeys, quota = 900, 5
	_, l := sharedStore(t, maxKeys, 100_000_000, quota, quota) // address; address and account; account
	fail := func(user string, times int) {
		for range times {
			_, err := l.Take(t.Context(), 1,
				core.Hit{Rule: "r0", Key: "192.0.2.1"}, core.Hit{Rule: "r1", Key: "192.0.2.1 " + user}, core.Hit{Rule: "r2", Key: user})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	denied := func() bool {
		return left(t, l, "r1", "192.0.2.1 victim") == 0 && left(t, l, "r2", "victim") == 0
	}
	fail("victim", quota)
	for i := range 20 * maxKeys {
		fail(fmt.Sprint("once", i), 1)
	}
	if !denied() {
		t.Fatal("a flood of usernames with one failure each has released a denied username")
	}
	for i := range maxKeys/3 - 1 {
		fail(fmt.Sprint("denied", i), quota)
	}
	if !denied() {
		t.Fatal("fewer denied usernames than the rule's share have released another one")
	}
	// Each new denied username evicts one of the few that it examines. Which ones
	// these are depends on the random hash, so the first one may survive several
	// rounds; that it survives all of these is less likely than 10⁻²⁰.
	for i := 0; denied(); i++ {
		if i == 20*maxKeys {
			t.Fatal("the documented number is too low: a store full of denied usernames still holds the first one")
		}
		fail(fmt.Sprint("more", i), quota)
	}
}

// A take does not evict a key that it has itself charged; if MaxKeys is lower
// than the number of its keys, those beyond it are not held.
func TestATakeKeepsItsOwnKeys(t *testing.T) {
	for maxKeys := 1; maxKeys <= 4; maxKeys++ {
		m, l := sharedStore(t, maxKeys, 5, 5, 5)
		for i := range 300 {
			key := fmt.Sprint(i)
			d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r0", Key: key}, core.Hit{Rule: "r1", Key: key}, core.Hit{Rule: "r2", Key: key})
			if err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			held := 0
			for _, rule := range []string{"r0", "r1", "r2"} {
				if left(t, l, rule, key) == 4 {
					held++
				}
			}
			if want := min(3, maxKeys); held != want || m.Len() > maxKeys {
				t.Fatalf("MaxKeys %d, take %d: %d of its 3 keys are held, want %d; Len %d", maxKeys, i, held, want, m.Len())
			}
		}
	}
}

// A panic of the clock is the caller's panic. It leaves no lock held and
// charges nothing.
func TestAClockThatPanicsLeavesTheStoreUsable(t *testing.T) {
	c, panics := newClock(), false
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 100, Clock: func() time.Time {
		if panics {
			panic("the clock is broken")
		}
		return c.Now()
	}}))
	l := newLimiter(t, core.Config{Store: m, Rules: []core.Rule{
		{Name: "r", Limits: []core.Limit{core.PerHour(5)}},
		{Name: "two", Limits: []core.Limit{core.PerHour(5), {Quota: 9, Window: 24 * time.Hour}}},
	}}, nil)
	known, unknown, two := core.Hit{Rule: "r", Key: "known"}, core.Hit{Rule: "r", Key: "unknown"}, core.Hit{Rule: "two", Key: "k"}
	charged, err := l.Take(t.Context(), 1, known)
	if err != nil {
		t.Fatal(err)
	}
	for name, op := range map[string]func() error{
		"take of a known key": func() error { _, err := l.Take(t.Context(), 1, known); return err },
		"take of a new key":   func() error { _, err := l.Take(t.Context(), 1, unknown); return err },
		"take of two keys":    func() error { _, err := l.Take(t.Context(), 1, known, two); return err },
		"peek":                func() error { _, err := l.Peek(t.Context(), 1, two); return err },
		"refund":              func() error { return l.Adjust(t.Context(), charged, 0) },
		"reset":               func() error { return l.Reset(t.Context(), known) },
	} {
		panics = true
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the clock's panic is lost", name)
				}
			}()
			_ = op()
		}()
		panics = false
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, h := range []core.Hit{known, unknown, two} {
				if _, err := l.Peek(t.Context(), 1, h); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if got := left(t, l, "r", "known"); got != 4 {
				t.Errorf("%s: %d hits are left of 5 after one was charged", name, got)
			}
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: a lock is still held", name)
		}
	}
	if m.Len() != 1 {
		t.Errorf("%d keys are held, want 1", m.Len())
	}
}

// The clock is called without a lock: it may use the store itself.
func TestAClockMayUseTheStore(t *testing.T) {
	c, nested := newClock(), false
	var l *core.Limiter
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 100, Clock: func() time.Time {
		if nested {
			nested = false
			takeOf(t, l, "r", "k")
		}
		return c.Now()
	}}))
	l = newLimiter(t, core.Config{Store: m, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(5)}}}}, nil)
	for range 2 {
		nested = true
		takeOf(t, l, "r", "k")
	}
	if got := left(t, l, "r", "k"); got != 1 {
		t.Errorf("%d hits are left of 5 after four", got)
	}
}

// Close may be called while the store is in use. When it has returned, every
// operation fails with ErrClosed, and nothing is held.
func TestCloseWhileTheStoreIsInUse(t *testing.T) {
	for range 20 {
		m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 5000}))
		config := core.Config{Store: m, Rules: []core.Rule{
			{Name: "a", Limits: []core.Limit{core.PerHour(3)}},
			{Name: "b", Limits: []core.Limit{core.PerHour(3), {Quota: 9, Window: 24 * time.Hour}}},
		}}
		l := newLimiter(t, config, nil)
		closed := make(chan struct{})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					a, b := core.Hit{Rule: "a", Key: fmt.Sprint(i)}, core.Hit{Rule: "b", Key: fmt.Sprint(i / 2)}
					after := false
					select {
					case <-closed:
						after = true
					default:
					}
					var d core.Decision
					var errs [4]error
					d, errs[0] = l.Take(t.Context(), 1, a)
					_, errs[1] = l.Take(t.Context(), 1, a, b)
					errs[2] = l.Reset(t.Context(), b)
					if errs[0] == nil {
						errs[3] = l.Adjust(t.Context(), d, 0)
					} else {
						errs[3] = errs[0]
					}
					if g == 0 && i%10 == 0 {
						next := config
						next.Store = nil
						next.Rules = next.Rules[:1+i/10%2]
						if err := l.Reconfigure(next); err != nil && !errors.Is(err, core.ErrClosed) {
							t.Error(err)
						}
					}
					for _, err := range errs {
						if errors.Is(err, core.ErrUnknownRule) {
							continue
						}
						if err != nil && !errors.Is(err, core.ErrClosed) || after && err == nil {
							t.Errorf("after Close: %v, error %v", after, err)
							return
						}
					}
					if after {
						return
					}
				}
			})
		}
		wg.Go(func() {
			for m.Len() < 100 {
				runtime.Gosched()
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			close(closed)
		})
		wg.Wait()
		if m.Len() != 0 {
			t.Fatalf("%d keys are held after Close", m.Len())
		}
	}
}

// A store around a Memory may hand it a batch without room for the results. That
// is a panic of its own, which must not leave the shard of the key locked.
func TestABatchWithoutResultsLeavesTheStoreUsable(t *testing.T) {
	for name, limits := range map[string][]core.Limit{
		"one limit":  {core.PerHour(5)},
		"two limits": {core.PerHour(5), core.Limit{Quota: 9, Window: 24 * time.Hour}},
		"a log":      {{Quota: 5, Window: time.Hour, Algorithm: core.SlidingLog}},
	} {
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, known=%t", name, known), func(t *testing.T) {
				m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 100})) // one shard
				counters := core.Must(m.Open("l", []core.StoreRule{{Name: "r", Limits: limits}}))
				take := func(key string, results int) error {
					return counters.Do(t.Context(), &core.Batch{Op: core.OpTake, Items: []core.Item{{Key: []byte(key), Cost: 1, Results: make([]core.Result, results)}}})
				}
				if known {
					if err := take("k", len(limits)); err != nil {
						t.Fatal(err)
					}
				}
				func() {
					defer func() {
						if recover() == nil {
							t.Error("the panic is lost")
						}
					}()
					_ = take("k", 0)
				}()
				done := make(chan error)
				go func() { done <- take("another", len(limits)) }()
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("a lock is still held")
				}
			})
		}
	}
}
