package core_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func memoryLimiter(t testing.TB, maxKeys int, c *clock, limits ...core.Limit) (*core.Memory, *core.Limiter) {
	t.Helper()
	m, config := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: maxKeys, Clock: c.Now})), oneRule(limits...)
	config.Store = m
	return m, newLimiter(t, config, nil)
}

// A flood of keys does not grow the store.
func TestMaxKeysIsNeverExceeded(t *testing.T) {
	for _, maxKeys := range []int{1, 2, 7, 100, 3000, 20_000} {
		m, l := memoryLimiter(t, maxKeys, newClock(), core.PerHour(10))
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range maxKeys {
					takeOf(t, l, "r", fmt.Sprint(g, "-", i))
					if n := m.Len(); n > maxKeys {
						t.Errorf("%d keys, at most %d", n, maxKeys)
						return
					}
				}
			})
		}
		wg.Wait()
		if m.Len() != maxKeys || m.Evicted() != uint64(3*maxKeys) {
			t.Errorf("MaxKeys %d after four times as many: %d keys, %d evicted", maxKeys, m.Len(), m.Evicted())
		}
	}
}

// The memory of keys that have expired is given back, table by table, while others arrive.
func TestMemoryShrinksWhenItsKeysExpire(t *testing.T) {
	c := newClock()
	m, l := memoryLimiter(t, 100_000, c, core.PerSecond(5), core.Limit{Quota: 5, Window: time.Second, Algorithm: core.SlidingLog})
	empty := heap()
	for i := range 50_000 {
		takeOf(t, l, "r", strconv.Itoa(i))
	}
	full := heap() - empty
	for i := range 25_000 {
		if i%1000 == 0 {
			c.advance(time.Hour)
		}
		takeOf(t, l, "r", "new"+strconv.Itoa(i%100))
		takeOf(t, l, "r", "newer"+strconv.Itoa(i))
	}
	if n := m.Len(); n > 25_000 {
		t.Errorf("%d keys are held, most of which have expired", n)
	}
	if now := heap() - empty; now > full/2 {
		t.Errorf("%d bytes are held, and %d were with 50,000 keys", now, full)
	}
	runtime.KeepAlive(m)
}

// heap returns the bytes of the heap that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what pools have kept
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

func TestClose(t *testing.T) {
	m, l := memoryLimiter(t, 0, newClock(), core.PerMinute(5))
	takeOf(t, l, "r", "k")
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	hit := core.Hit{Rule: "r", Key: "k"}
	_, takeErr := l.Take(t.Context(), 1, hit)
	_, twoErr := l.Take(t.Context(), 1, hit, core.Hit{Rule: "r", Key: "j"})
	open := func(name string) error { _, err := m.Open(name, nil); return err }
	for name, err := range map[string]error{
		"Take": takeErr, "Take of two": twoErr, "Reset": l.Reset(t.Context(), hit), "ResetAll": l.ResetAll(t.Context()),
		"Open": open("other"), "Open again": open("other"), "Open of a name that was open": open(l.Name()),
		"Reconfigure": l.Reconfigure(oneRule(core.PerMinute(1))),
	} {
		if !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if m.Len() != 0 {
		t.Errorf("%d keys", m.Len())
	}
}

// Close may be called while the store is in use. When it has returned, every
// operation fails with ErrClosed, and nothing is held.
func TestCloseWhileTheStoreIsInUse(t *testing.T) {
	for range 10 {
		m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 5000}))
		l := newLimiter(t, core.Config{Store: m, Rules: numbered(2)}, nil)
		var closed atomic.Bool
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i, after := 0, false; !after; i++ {
					after = closed.Load()
					a, b := core.Hit{Rule: "r0", Key: fmt.Sprint(i)}, core.Hit{Rule: "r1", Key: fmt.Sprint(i / 2)}
					d, err := l.Take(t.Context(), 1, a)
					_, two := l.Take(t.Context(), 1, a, b)
					errs := []error{err, two, l.Reset(t.Context(), b)}
					if err == nil {
						errs = append(errs, l.Adjust(t.Context(), d, 0))
					}
					if g == 0 && i%10 == 0 {
						errs = append(errs, l.Reconfigure(core.Config{Rules: numbered(2)}))
					}
					for _, err := range errs {
						if err != nil && !errors.Is(err, core.ErrClosed) || after && err == nil {
							t.Errorf("after Close: %v, error %v", after, err)
						}
					}
				}
			})
		}
		for m.Len() < 100 {
			runtime.Gosched()
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		closed.Store(true)
		wg.Wait()
		if m.Len() != 0 {
			t.Fatalf("%d keys are held after Close", m.Len())
		}
	}
}

func TestTheRangeOfMaxKeys(t *testing.T) {
	for keys, ok := range map[int64]bool{math.MaxInt32: true, 1 << 31: false, 1: true, -1: false} {
		if keys > math.MaxInt {
			continue // a processor of 32 bits
		}
		if _, err := core.NewMemory(core.MemoryConfig{MaxKeys: int(keys)}); (err == nil) != ok || err != nil && (!errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "MaxKeys")) {
			t.Errorf("MaxKeys %d: %v", keys, err)
		}
	}
}

// Without a MaxKeys, a rule whose states can become large has fewer keys.
func TestKeysOfLargeStatesAreFewerByDefault(t *testing.T) {
	log := core.Limit{Quota: core.MaxLogQuota, Window: time.Hour, Algorithm: core.SlidingLog}
	for maxKeys, want := range map[int]int{0: 8_000, core.DefaultMaxKeys: 10_000} {
		m, l := memoryLimiter(t, maxKeys, newClock(), log)
		for i := range 10_000 {
			takeOf(t, l, "r", strconv.Itoa(i))
		}
		if got := m.Len(); got < want || got > want+want/10 {
			t.Errorf("MaxKeys %d: %d keys, want %d", maxKeys, got, want)
		}
	}
}

func TestWhatAMemoryCannotOpen(t *testing.T) {
	m := core.Must(core.NewMemory(core.MemoryConfig{}))
	r := core.StoreRule{Name: "r", Limits: []core.Limit{core.PerMinute(5)}}
	if got := m.Guarantees(); got != (core.Guarantees{Ops: core.AllOps, Exact: true, OneStep: true, KeepsDeadline: true, FailsFast: true, OnFailure: core.FailClosed}) {
		t.Errorf("%+v", got)
	}
	if _, err := m.Open("l", []core.StoreRule{r, r}); !errors.Is(err, core.ErrConfig) {
		t.Errorf("two rules of one name: %v", err)
	}
	c, err := m.Open("l", []core.StoreRule{r})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reopen([]core.StoreRule{r, r}); !errors.Is(err, core.ErrConfig) {
		t.Errorf("two rules of one name: %v", err)
	}
	if err := c.Do(t.Context(), &core.Batch{Op: 1 << 15, Items: make([]core.Item, 1)}); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("an operation of a later version: %v", err)
	}
}

// Without a clock of its own a Memory uses the process's monotonic clock, which in a synctest bubble is
// the bubble's. It counts from when the Memory was made: the microseconds of the wall clock begin earlier.
func TestTheStoresOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Microsecond / 2) // in the bubble's time
		l := newLimiter(t, oneRule(fixed(2, time.Minute)), nil)
		for _, want := range []bool{true, true, false} {
			if takeOf(t, l, "r", "k") != want {
				t.Errorf("allowed: %t", !want)
			}
		}
		time.Sleep(time.Minute - time.Microsecond/2)
		if takeOf(t, l, "r", "k") {
			t.Error("allowed half a microsecond early")
		}
		time.Sleep(time.Microsecond / 2)
		if !takeOf(t, l, "r", "k") {
			t.Error("denied at RetryAfter")
		}
	})
}

// The clock of a test may begin in the year 1.
func TestAClockBefore1970(t *testing.T) {
	now := time.Time{}
	m := core.Must(core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return now }}))
	config := oneRule(core.PerMinute(2))
	config.Store = m
	l := newLimiter(t, config, nil)
	for _, want := range []bool{true, true, false} {
		if takeOf(t, l, "r", "k") != want {
			t.Errorf("allowed: %t", !want)
		}
	}
	reset(t, l, core.Hit{Rule: "r", Key: "k"})
	if !takeOf(t, l, "r", "k") {
		t.Error("denied after a reset")
	}
	if err := l.Block(t.Context(), time.Hour, core.Hit{Rule: "r", Key: "k"}); err != nil || takeOf(t, l, "r", "k") {
		t.Errorf("allowed while blocked: %v", err)
	}
	if now = now.Add(time.Hour); !takeOf(t, l, "r", "k") {
		t.Error("denied after the block")
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

// A charge of nothing keeps no key.
func TestAChargeOfNothingKeepsNoKey(t *testing.T) {
	m := core.Must(core.NewMemory(core.MemoryConfig{Clock: newClock().Now}))
	c := core.Must(m.Open("l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerMinute(5)}}}))
	for cost, want := range []int{0, 1} {
		items := []core.Item{{Key: []byte("k\x00"), Cost: int64(cost), Results: make([]core.Result, 1)}}
		if err := c.Do(t.Context(), &core.Batch{Op: core.OpCharge, Items: items}); err != nil || m.Len() != want {
			t.Errorf("a charge of %d: %v, %d keys, want %d", cost, err, m.Len(), want)
		}
	}
}

// A new key may move the slots of the other keys of its take or charge.
func TestAKeyIsChargedBesideNewOnes(t *testing.T) {
	l := newLimiter(t, oneRule(core.PerHour(1_000_000)), newClock())
	for i := range 10_000 {
		fresh, known := core.Hit{Rule: "r", Key: strconv.Itoa(i)}, core.Hit{Rule: "r", Key: "known"}
		d, err := l.Take(t.Context(), 1, fresh, known)
		if err != nil || !d.Allowed || d.Remaining != int64(999_999-2*i) {
			t.Fatalf("take %d: %v, %v", i, d, err)
		}
		reset(t, l, fresh)
		if err := l.Adjust(t.Context(), d, 2); err != nil {
			t.Fatal(err)
		}
		if a, b := left(t, l, "r", fresh.Key), left(t, l, "r", "known"); a != 999_999 || b != int64(999_998-2*i) {
			t.Fatalf("charge %d: %d and %d left", i, a, b)
		}
	}
}

// A full store evicts the key that has used the smallest part of its limits, by the fullest of them.
func TestTheFullestLimitKeepsAKey(t *testing.T) {
	clock := newClock()
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 2, Clock: clock.Now}))
	c := oneRule(fixed(10, time.Hour), fixed(10, time.Second))
	c.Store = m
	l := newLimiter(t, c, clock)
	for i := range 5 {
		takeOf(t, l, "r", "hours")
		clock.advance(time.Duration(i) * time.Second)
	}
	takeOf(t, l, "r", "seconds")
	takeOf(t, l, "r", "new")
	if got := left(t, l, "r", "hours"); got != 5 || m.Evicted() != 1 {
		t.Errorf("%d left, %d keys were evicted", got, m.Evicted())
	}
}

// Keys that are reset, and keys of a rule that is removed, leave their room to
// others: a store that is nearly empty evicts nothing.
func TestRoomThatIsGivenBackIsUsedAgain(t *testing.T) {
	const maxKeys = 3000 // more than one shard
	limits := []core.Limit{core.PerHour(5)}
	rule := func(name string) core.Rule { return core.Rule{Name: name, Limits: limits} }
	for name, give := range map[string]func(t *testing.T, l *core.Limiter){
		"Reset": func(t *testing.T, l *core.Limiter) {
			for i := range maxKeys {
				reset(t, l, core.Hit{Rule: "a", Key: fmt.Sprint(i)})
			}
		},
		"Reconfigure": func(t *testing.T, l *core.Limiter) {
			if err := l.Reconfigure(core.Config{Rules: []core.Rule{rule("b")}}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: maxKeys, Clock: newClock().Now}))
			l := newLimiter(t, core.Config{Store: m, Rules: []core.Rule{rule("a"), rule("b")}}, nil)
			for i := range maxKeys {
				takeOf(t, l, "a", fmt.Sprint(i))
			}
			give(t, l)
			if n := m.Len(); n != 0 {
				t.Errorf("%d keys are held after all were given up", n)
			}
			for i := range maxKeys {
				takeOf(t, l, "b", fmt.Sprint(i))
			}
			if m.Evicted() != 0 || m.Len() != maxKeys {
				t.Errorf("%d keys, %d evicted, want %d keys and no eviction", m.Len(), m.Evicted(), maxKeys)
			}
		})
	}
}

func ExampleNewMemory() {
	store, err := core.NewMemory(core.MemoryConfig{MaxKeys: 100_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := core.Must(core.New(core.Config{
		Store: store,
		Rules: []core.Rule{{Name: "ip", Key: static("192.0.2.1"), Limits: []core.Limit{core.PerMinute(5)}}},
	}))
	limiter.Check(&request{})
	fmt.Println(store.Len(), store.Evicted())
	// Output: 1 0
}
