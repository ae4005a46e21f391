package core_test

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/racetest"
)

func memoryLimiter(t testing.TB, maxKeys int, c *clock, limits ...core.Limit) (*core.Memory, *core.Limiter) {
	t.Helper()
	m, err := core.NewMemory(core.MemoryConfig{MaxKeys: maxKeys, Clock: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	c2 := core.Config{Store: m, Rules: []core.Rule{{Name: "r", Limits: limits}}}
	return m, newLimiter(t, c2, nil)
}

func take(t testing.TB, l *core.Limiter, key string) bool {
	t.Helper()
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Allowed
}

// A flood of keys does not grow the store.
func TestMaxKeysIsNeverExceeded(t *testing.T) {
	for _, maxKeys := range []int{1, 2, 7, 100, 3000, 20_000} {
		m, l := memoryLimiter(t, maxKeys, newClock(), core.PerHour(10))
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range maxKeys {
					take(t, l, fmt.Sprint(g, "-", i))
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

// A denied key stays denied during a flood of other keys.
func TestAFloodEvictsNoDeniedKey(t *testing.T) {
	for name, limit := range map[string]core.Limit{
		"one hit in two": core.PerHour(2),
		"one hit is all": core.PerHour(1), // every key of the flood is denied next time, too
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			m, l := memoryLimiter(t, 1000, c, limit)
			const denied = 100
			for i := range denied {
				for take(t, l, fmt.Sprint("denied", i)) {
				}
			}
			for i := range 5_000 {
				c.advance(time.Microsecond)
				take(t, l, fmt.Sprint("flood", i))
			}
			released := 0
			for i := range denied {
				if take(t, l, fmt.Sprint("denied", i)) {
					released++
				}
			}
			if limit.Quota > 1 && released > 0 {
				t.Errorf("%d of %d were released", released, denied)
			}
			if m.Len() != 1000 {
				t.Errorf("%d keys", m.Len())
			}
		})
	}
}

// A key that has used next to nothing of a large quota is alive all the same.
func TestKeysOfLargeQuotasAreEvictedAsAlive(t *testing.T) {
	m, l := memoryLimiter(t, 10, newClock(), core.PerHour(100_000_000))
	for i := range 30 {
		take(t, l, fmt.Sprint(i))
	}
	if m.Evicted() != 20 || m.Len() != 10 {
		t.Errorf("%d keys, %d evicted", m.Len(), m.Evicted())
	}
}

// The memory of keys that have expired is given back, table by table, while
// others arrive.
func TestMemoryShrinksWhenItsKeysExpire(t *testing.T) {
	c := newClock()
	m, l := memoryLimiter(t, 100_000, c, core.PerSecond(5), core.Limit{Quota: 5, Window: time.Second, Algorithm: core.SlidingLog})
	empty := heap()
	for i := range 50_000 {
		take(t, l, strconv.Itoa(i))
	}
	full := heap() - empty
	for i := range 25_000 {
		if i%1000 == 0 {
			c.advance(time.Hour)
		}
		take(t, l, "new"+strconv.Itoa(i%100))
		take(t, l, "newer"+strconv.Itoa(i))
	}
	if n := m.Len(); n > 25_000 {
		t.Errorf("%d keys are held, most of which have expired", n)
	}
	if now := heap() - empty; now > full/2 {
		t.Errorf("%d bytes are held, and %d were with 50,000 keys", now, full)
	}
	runtime.KeepAlive(m)
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what pools have kept
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

func TestClose(t *testing.T) {
	m, l := memoryLimiter(t, 0, newClock(), core.PerMinute(5))
	take(t, l, "k")
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	hit := core.Hit{Rule: "r", Key: "k"}
	_, takeErr := l.Take(t.Context(), 1, hit)
	_, twoErr := l.Take(t.Context(), 1, hit, core.Hit{Rule: "r", Key: "j"})
	bindErr := func(name string) error {
		_, err := core.New(core.Config{Name: name, Store: m, Rules: []core.Rule{{Limits: []core.Limit{core.PerMinute(1)}}}})
		return err
	}
	for name, err := range map[string]error{
		"Take": takeErr, "Take of two": twoErr, "Reset": l.Reset(t.Context(), hit),
		"New": bindErr("other"), "New again": bindErr("other"), "New with a name that was bound": bindErr(l.Name()),
		"Reconfigure": l.Reconfigure(core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}}),
	} {
		if !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if m.Len() != 0 {
		t.Errorf("%d keys", m.Len())
	}
	if d := l.Check(&request{}); d.Reason != core.ReasonNoRule {
		t.Error(d)
	}
}

func TestNewMemoryNamesWhatIsWrong(t *testing.T) {
	wrong := []int{-1}
	if strconv.IntSize == 64 { // an int of 32 bits cannot be too large
		over := int64(1 << 31)
		wrong = append(wrong, int(over))
	}
	for _, n := range wrong {
		if _, err := core.NewMemory(core.MemoryConfig{MaxKeys: n}); !errors.Is(err, core.ErrConfig) {
			t.Errorf("MaxKeys %d: error %v", n, err)
		}
	}
}

// Without a clock of its own a Memory uses the process's monotonic clock, which in
// a synctest bubble is the bubble's.
func TestTheStoresOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(2)}}}}, nil)
		for range 3 {
			take(t, l, "k")
		}
		time.Sleep(time.Minute) // in the bubble's time
		if take(t, l, "k") {
			t.Error("allowed a microsecond early")
		}
		time.Sleep(time.Microsecond)
		if !take(t, l, "k") {
			t.Error("denied at RetryAfter")
		}
	})
}

func TestTakeAllocatesNothing(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: static("192.0.2.1"), Limits: []core.Limit{core.PerHour(core.MaxQuota)}}}}, nil)
	ctx, r := t.Context(), &request{}
	for name, f := range map[string]func(){
		"Take":  func() { _, _ = l.Take(ctx, 1, core.Hit{Rule: "r", Key: "k"}) },
		"Allow": func() { l.Allow(ctx, core.Hit{Rule: "r", Key: "k"}) },
		"Check": func() { l.Check(r) },
	} {
		if got := testing.AllocsPerRun(1000, f); got > 0 && !racetest.Enabled {
			t.Errorf("%s: %v allocations", name, got)
		}
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

// A charge of nothing keeps no key.
func TestAChargeOfNothingKeepsNoKey(t *testing.T) {
	m := core.Must(core.NewMemory(core.MemoryConfig{Clock: newClock().Now}))
	c, err := m.Open("l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerMinute(5)}}})
	if err != nil {
		t.Fatal(err)
	}
	for cost, want := range []int{0, 1} {
		items := []core.Item{{Key: []byte("k\x00"), Cost: int64(cost), Results: make([]core.Result, 1)}}
		if err := c.Do(t.Context(), &core.Batch{Op: core.OpCharge, Items: items}); err != nil || m.Len() != want {
			t.Errorf("a charge of %d: %v, %d keys, want %d", cost, err, m.Len(), want)
		}
	}
}

// deniedButOne returns a Memory that is full of denied keys, 0 to 999, and of the key "open",
// all of which have been taken with take.
func deniedButOne(t *testing.T, limit core.Limit, deny, open func(l *core.Limiter, k core.Hit)) (*core.Memory, *core.Limiter) {
	t.Helper()
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 1000, Clock: newClock().Now}))
	l := newLimiter(t, core.Config{Store: m, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{limit}}}}, nil)
	for i := range 1000 {
		if k := (core.Hit{Rule: "r", Key: fmt.Sprint(i)}); i == 999 {
			open(l, k)
		} else {
			deny(l, k)
		}
	}
	if m.Len() != 1000 || m.Evicted() != 0 {
		t.Fatalf("%d keys, %d evicted", m.Len(), m.Evicted())
	}
	return m, l
}

// expectOpenGone takes a new key, and looks whether the key that is not denied has made room.
func expectOpenGone(t *testing.T, m *core.Memory, l *core.Limiter) {
	t.Helper()
	takeOf(t, l, "r", "new")
	if m.Len() != 1000 || m.Evicted() != 1 {
		t.Errorf("%d keys, %d evicted, want 1", m.Len(), m.Evicted())
	}
	for i := range 1000 {
		want := int64(0)
		if i == 999 {
			want = 3
		}
		if got := left(t, l, "r", fmt.Sprint(i)); got != want {
			t.Errorf("key %d: %d left, want %d", i, got, want)
		}
	}
}

// A key that has been granted hits, or got some back, is not denied any more: it makes room before
// all denied ones do.
func TestAKeyThatGotHitsBackMakesRoomFirst(t *testing.T) {
	spend := func(l *core.Limiter, k core.Hit) core.Decision {
		d, err := l.Take(t.Context(), 3, k)
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		return d
	}
	for name, giveBack := range map[string]func(l *core.Limiter, k core.Hit, d core.Decision) error{
		"Grant": func(l *core.Limiter, k core.Hit, _ core.Decision) error {
			_, err := l.Grant(t.Context(), 1, k)
			return err
		},
		"Adjust to 0": func(l *core.Limiter, _ core.Hit, d core.Decision) error { return l.Adjust(t.Context(), d, 0) },
		"Adjust":      func(l *core.Limiter, _ core.Hit, d core.Decision) error { return l.Adjust(t.Context(), d, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			m, l := deniedButOne(t, core.PerHour(3), func(l *core.Limiter, k core.Hit) { spend(l, k) }, func(l *core.Limiter, k core.Hit) {
				if err := giveBack(l, k, spend(l, k)); err != nil {
					t.Fatal(err)
				}
			})
			expectOpenGone(t, m, l)
		})
	}
}

// A table whose keys have all been reset takes keys as before.
func TestATableWhoseKeysWereResetStaysUsable(t *testing.T) {
	m, l := memoryLimiter(t, 1000, newClock(), core.PerHour(5))
	for i := range 150 {
		take(t, l, fmt.Sprint(i))
	}
	for i := range 150 {
		reset(t, l, core.Hit{Rule: "r", Key: fmt.Sprint(i)})
	}
	for range 500 {
		take(t, l, "one")
		reset(t, l, core.Hit{Rule: "r", Key: "one"})
	}
	if n := m.Len(); n != 0 {
		t.Errorf("%d keys are held after all were reset", n)
	}
}

// Failed logins fill the tables and expire; the successful logins that follow
// take a key and reset it.
func TestSuccessfulLoginsAfterAFloodOfFailedOnes(t *testing.T) {
	c := newClock()
	m, l := memoryLimiter(t, 0, c, core.Limit{Quota: 5, Window: time.Minute, Algorithm: core.FixedWindow})
	for i := range 60_000 {
		take(t, l, fmt.Sprint("failed", i))
	}
	c.advance(time.Hour)
	for i := range 60_000 {
		key := fmt.Sprint("user", i)
		take(t, l, key)
		reset(t, l, core.Hit{Rule: "r", Key: key})
	}
	if n := m.Len(); n > 6_000 {
		t.Errorf("%d keys are held, and all of them have expired", n)
	}
}

// Clients alone empty the table of one rule: a flood on another rule pushes out
// what it holds, and then its next key arrives.
func TestAFloodOnAnotherRuleLeavesATableUsable(t *testing.T) {
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 1000, Clock: newClock().Now}))
	l := newLimiter(t, core.Config{Store: m, Rules: []core.Rule{
		{Name: "short", Limits: []core.Limit{{Quota: 5, Window: time.Minute}}},
		{Name: "day", Limits: []core.Limit{{Quota: 1, Window: 24 * time.Hour}}},
	}}, nil)
	for i := range 900 {
		takeOf(t, l, "short", fmt.Sprint(i))
	}
	for i := range 5000 {
		takeOf(t, l, "day", fmt.Sprint(i))
	}
	for i := range 2000 {
		takeOf(t, l, "short", fmt.Sprint("again", i))
		takeOf(t, l, "day", fmt.Sprint("again", i))
	}
}

func takeOf(t testing.TB, l *core.Limiter, rule, key string) bool {
	t.Helper()
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: rule, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Allowed
}

func reset(t testing.TB, l *core.Limiter, hits ...core.Hit) {
	t.Helper()
	if err := l.Reset(t.Context(), hits...); err != nil {
		t.Fatal(err)
	}
}
