package memcachedstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is for tests of what is decided, on machines that may be busy.
const patience = 20 * time.Second

func newStore(t testing.TB, servers []string, opts ...memcachedstore.Option) *memcachedstore.Store {
	t.Helper()
	s, err := memcachedstore.New(servers, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func factory(servers ...string) storetest.Factory {
	return func(t testing.TB, clock func() time.Time) core.Store {
		opts := []memcachedstore.Option{memcachedstore.Timeout(patience), memcachedstore.WithoutDenialCache()}
		if clock != nil {
			opts = append(opts, memcachedstore.Clock(clock))
		}
		return newStore(t, servers, opts...)
	}
}

func TestVectors(t *testing.T) {
	storetest.Vectors(t, factory(memcachedtest.Start(t).Addr))
}

func TestConformance(t *testing.T) {
	storetest.Run(t, factory(memcachedtest.Start(t).Addr, memcachedtest.Start(t).Addr), storetest.GivesBack(), storetest.Keeps(30*24*time.Hour))
}

// The denial cache is on by default.
func TestConformanceWithDenialCache(t *testing.T) {
	s := newStore(t, []string{memcachedtest.Start(t).Addr})
	l := newLimiter(t, s, "cached", core.PerHour(3))
	for i := range 6 {
		if d, err := take(l, "k"); err != nil || d.Allowed != (i < 3) {
			t.Errorf("take %d: %v, %v", i, d, err)
		}
	}
}

func newLimiter(t testing.TB, s core.Store, name string, limits ...core.Limit) *core.Limiter {
	t.Helper()
	l, err := core.New(core.Config{Name: name, Store: s, Rules: []core.Rule{{Name: "r", Key: core.TakeOnly, Limits: limits}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func take(l *core.Limiter, key string) (core.Decision, error) {
	return l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: key})
}

func left(t testing.TB, l *core.Limiter, key string) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), 0, core.Hit{Rule: "r", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// CASES 160: many callers of a new key, in several instances: the sum is exact.
func TestAllCallersOfANewKeyAreCounted(t *testing.T) {
	addr := memcachedtest.Start(t).Addr
	for _, callers := range []int{64, 512} {
		var limiters []*core.Limiter
		for range 4 {
			limiters = append(limiters, newLimiter(t, newStore(t, []string{addr}, memcachedstore.Timeout(patience)), fmt.Sprint("new", callers), core.PerHour(1000)))
		}
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				if d, err := take(limiters[i%len(limiters)], "k"); err != nil || !d.Allowed {
					t.Errorf("%v, %v", d, err)
				}
			})
		}
		wg.Wait()
		if got := left(t, limiters[0], "k"); got != 1000-int64(callers) {
			t.Errorf("%d left after %d takes", got, callers)
		}
	}
}

// CASES 156: exactly the quota is admitted, by all instances together.
func TestFourInstancesAdmitExactlyTheQuota(t *testing.T) {
	addr := memcachedtest.Start(t).Addr
	for i, l := range []core.Limit{
		core.PerHour(20),
		{Quota: 20, Window: time.Hour, Algorithm: core.FixedWindow},
		{Quota: 20, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
		{Quota: 20, Window: time.Hour, Algorithm: core.SlidingLog},
		{Quota: 20, Window: 100 * time.Hour, Algorithm: core.TokenBucket},
	} {
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			limiter := newLimiter(t, newStore(t, []string{addr}, memcachedstore.Timeout(patience)), fmt.Sprint("exact", i), l)
			for range 160 {
				wg.Go(func() {
					if d, err := take(limiter, "k"); err != nil {
						t.Error(err)
					} else if d.Allowed {
						admitted.Add(1)
					}
				})
			}
		}
		wg.Wait()
		if n := admitted.Load(); n != 20 {
			t.Errorf("%v: %d of 640 admitted, want 20", l, n)
		}
	}
}

// CASES 162: windows of a second for a minute: never open early.
func TestWindowsOfASecond(t *testing.T) {
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	s := newStore(t, []string{memcachedtest.Start(t).Addr}, memcachedstore.Timeout(patience), memcachedstore.Clock(clock.Now))
	l := newLimiter(t, s, "second", core.Limit{Quota: 5, Window: time.Second, Algorithm: core.SlidingLog})
	r := rand.New(rand.NewPCG(1, 2))
	var admitted []time.Time
	for end := clock.Now().Add(time.Minute); clock.Now().Before(end); clock.Advance(time.Duration(r.Int64N(100_000)) * time.Microsecond) {
		within := 0
		for _, at := range admitted {
			if clock.Now().Sub(at) < time.Second {
				within++
			}
		}
		d, err := take(l, "k")
		if err != nil || d.Allowed != (within < 5) {
			t.Fatalf("%d in the last second: %v, %v", within, d, err)
		}
		if d.Allowed {
			admitted = append(admitted, clock.Now())
		}
	}
}

// CASES 162: an item outlives its window, in memcached's own time.
func TestItemsOutliveTheirWindows(t *testing.T) {
	server := memcachedtest.Start(t)
	for window, want := range map[time.Duration]string{
		time.Millisecond:               "t=3",
		time.Second:                    "t=3",
		time.Second + time.Millisecond: "t=4",
		24 * time.Hour:                 "t=86402",
	} {
		l := newLimiter(t, newStore(t, []string{server.Addr}), fmt.Sprint("ttl", window.Microseconds()), core.Limit{Quota: 5, Window: window, Algorithm: core.FixedWindow})
		d, err := take(l, "k")
		if err != nil {
			t.Fatal(err)
		}
		reply := server.MustDo("mg " + d.StoredKey() + " t")
		if got := strings.Fields(strings.Replace(reply, " t", " t=", 1)); len(got) < 2 || got[1] != want && got[1] != want[:2]+fmt.Sprint(atoi(want[2:])-1) {
			t.Errorf("window %v: %q, want %s", window, reply, want)
		}
	}
}

func atoi(s string) (n int) {
	_, _ = fmt.Sscan(s, &n)
	return n
}

// CASES 103: what memcached would forget too early is refused at once.
func TestLimitsOfMoreThanThirtyDays(t *testing.T) {
	const day = 24 * time.Hour
	s := newStore(t, []string{"127.0.0.1:1"})
	for i, l := range []core.Limit{
		{Quota: 1, Window: 31 * day, Algorithm: core.FixedWindow},
		{Quota: 1, Window: 30 * day, Algorithm: core.FixedWindow},
		{Quota: 1, Window: 15 * day},
		{Quota: 2, Window: 20 * day, Algorithm: core.TokenBucket, Burst: 4},
		{Quota: 2, Window: day, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: day, Max: 16 * day, Decay: 16 * day}},
	} {
		_, err := core.New(core.Config{Name: fmt.Sprint("long", i), Store: s, Rules: []core.Rule{{Name: "r", Key: core.TakeOnly, Limits: []core.Limit{l}}}})
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `rule "r", limit "r": Window: `+l.Window.String()) {
			t.Errorf("%v: %v", l, err)
		}
	}
	newLimiter(t, s, "short", core.Limit{Quota: 1, Window: 29 * day, Algorithm: core.FixedWindow}, core.Limit{Quota: 1, Window: 14 * day})
}

// CASES 35, 36: keys that memcached would refuse are counted like any other.
func TestKeysThatMemcachedRefuses(t *testing.T) {
	l := newLimiter(t, newStore(t, []string{memcachedtest.Start(t).Addr}), "keys", core.PerHour(2))
	for _, key := range []string{"", "a b", "a\r\nset x 0 0 1\r\n1", "\t", "\x00", "\x7f", strings.Repeat("x", 251), strings.Repeat("x", 10_000)} {
		for i := range 3 {
			d, err := take(l, key)
			if err != nil || d.Allowed != (i < 2) {
				t.Errorf("%.20q, take %d: %v, %v", key, i, d, err)
			}
			if name := d.StoredKey(); len(name) > 200 || strings.ContainsAny(name, " \r\n\t\x00") {
				t.Errorf("stored as %q", name)
			}
		}
	}
}

// CASES 105, 164: a value that is not as we wrote it counts as none, and is
// replaced by the next charge.
func TestForeignValuesAreReplaced(t *testing.T) {
	addr := memcachedtest.Start(t).Addr
	client := memcache.New(addr)
	defer client.Close() //nolint:errcheck // of no interest any more
	l := newLimiter(t, newStore(t, []string{addr}, memcachedstore.WithoutDenialCache()), "foreign", core.PerHour(5), core.PerDay(50))
	d, err := take(l, "k")
	if err != nil {
		t.Fatal(err)
	}
	item, err := client.Get(d.StoredKey())
	if err != nil {
		t.Fatal(err)
	}
	good := item.Value
	for name, value := range map[string][]byte{
		"nothing":   {},
		"text":      []byte("abc"),
		"a number":  []byte("5 "),
		"saturated": []byte("18446744073709551615"),
		"padded":    append(append([]byte(nil), good...), ' '),
		"cut":       good[:len(good)-1],
		"half":      good[:len(good)/2],
		"changed":   append([]byte{good[0], good[1] ^ 1}, good[2:]...),
		"long":      make([]byte, 100_000),
	} {
		for range 4 {
			_, _ = take(l, "k")
		}
		if err := client.Set(&memcache.Item{Key: d.StoredKey(), Value: value, Flags: 7}); err != nil {
			t.Fatal(err)
		}
		if got := left(t, l, "k"); got != 5 {
			t.Errorf("%s: %d left, want 5", name, got)
		}
		if d, err := take(l, "k"); err != nil || !d.Allowed || d.Remaining != 4 {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}

// CASES 141, 142, 166: replies that are cut off or never come: no hit is
// charged twice, and nobody waits much longer than the deadline.
func TestLostReplies(t *testing.T) {
	server := memcachedtest.Start(t)
	for name, fault := range map[string]faultproxy.Fault{"cut": faultproxy.Cut, "swallowed": faultproxy.Swallow} {
		t.Run(name, func(t *testing.T) {
			proxy := faultproxy.Start(t, server.Addr)
			opts := []memcachedstore.Option{memcachedstore.Timeout(300 * time.Millisecond), memcachedstore.WithoutDenialCache()}
			l := newLimiter(t, newStore(t, []string{proxy.Addr}, opts...), name, core.PerHour(1000))
			direct := newLimiter(t, newStore(t, []string{server.Addr}, opts...), name, core.PerHour(1000))
			for skip := range 4 { // the reply to the first command, then to the second
				before := left(t, direct, "k")
				proxy.Fail(fault, 1)
				start := time.Now()
				_, err := take(l, "k")
				if waited := time.Since(start); waited > 5*time.Second {
					t.Errorf("waited %v", waited)
				}
				if err == nil {
					t.Error("no error")
				}
				proxy.Fail(faultproxy.None, 0)
				if got := left(t, direct, "k"); got != before && got != before-1 {
					t.Errorf("round %d: %d left, were %d", skip, got, before)
				}
				if d, err := take(l, "k"); err != nil || !d.Allowed {
					t.Errorf("afterwards: %v, %v", d, err)
				}
			}
		})
	}
}

// CASES 166: a server that is started again has forgotten, and counts anew.
func TestARestartForgets(t *testing.T) {
	server := memcachedtest.Start(t)
	l := newLimiter(t, newStore(t, []string{server.Addr}, memcachedstore.WithoutDenialCache()), "restart", core.PerHour(3))
	for range 4 {
		_, _ = take(l, "k")
	}
	server.Stop()
	if _, err := take(l, "k"); err == nil {
		t.Error("no error while the server is gone")
	}
	server.Restart()
	for i := range 5 {
		d, err := take(l, "k")
		if i == 0 && err != nil {
			continue // a connection from before
		}
		if err != nil || d.Remaining > 2 {
			t.Errorf("take %d: %v, %v", i, d, err)
		}
	}
}

// CASES 165: another list of servers moves keys: at most twice the quota.
func TestAnotherListOfServers(t *testing.T) {
	addrs := []string{memcachedtest.Start(t).Addr, memcachedtest.Start(t).Addr, memcachedtest.Start(t).Addr}
	two := newLimiter(t, newStore(t, addrs[:2]), "servers", core.PerHour(3))
	three := newLimiter(t, newStore(t, addrs), "servers", core.PerHour(3))
	moved := 0
	for key := range 60 {
		admitted := 0
		for _, l := range []*core.Limiter{two, three} {
			for range 5 {
				d, err := take(l, fmt.Sprint(key))
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					admitted++
				}
			}
		}
		switch admitted {
		case 3:
		case 6:
			moved++
		default:
			t.Errorf("key %d: %d admitted", key, admitted)
		}
	}
	if moved == 0 || moved == 60 {
		t.Errorf("%d of 60 keys have moved", moved)
	}
}

// CASES 169: a server without room forgets; nothing fails.
func TestAServerWithoutRoom(t *testing.T) {
	l := newLimiter(t, newStore(t, []string{memcachedtest.Start(t, "-m", "4", "-I", "1m").Addr}, memcachedstore.Timeout(patience)), "room", core.PerHour(100))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 6000 {
				if d, err := take(l, fmt.Sprint(g, "-", i)); err != nil || !d.Allowed {
					t.Errorf("%v, %v", d, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// CASES 168: connections are used again.
func TestConnectionsAreUsedAgain(t *testing.T) {
	server := memcachedtest.Start(t)
	l := newLimiter(t, newStore(t, []string{server.Addr}, memcachedstore.Timeout(patience)), "idle", core.PerHour(1_000_000))
	for range 5 {
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				if _, err := take(l, fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	if n := statistic(t, server, "total_connections"); n > 300 {
		t.Errorf("%d connections were made for 5 × 200 takes", n)
	}
}

func statistic(t *testing.T, server *memcachedtest.Server, name string) (n int) {
	t.Helper()
	for line := range strings.Lines(server.All("stats")) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[1] == name {
			return atoi(fields[2])
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

func TestWrongOptionsAreNamed(t *testing.T) {
	_, err := memcachedstore.New(nil, memcachedstore.Timeout(0), memcachedstore.IdleConnections(0), memcachedstore.Clock(nil))
	if !errors.Is(err, core.ErrConfig) {
		t.Fatal(err)
	}
	for _, want := range []string{"servers: none", "Timeout: 0s", "IdleConnections: 0", "Clock: <nil>"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	if _, err := memcachedstore.New([]string{"nonsense"}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "nonsense") {
		t.Error(err)
	}
	if err := newStore(t, []string{"127.0.0.1:1"}).Ping(t.Context()); err == nil {
		t.Error("Ping of nobody: no error")
	}
	if err := newStore(t, []string{memcachedtest.Start(t).Addr}).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func BenchmarkTake(b *testing.B) {
	server := memcachedtest.Start(b)
	for _, goroutines := range []int{1, 16, 64} {
		for _, keys := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%dgoroutines/%dkeys", goroutines, keys), func(b *testing.B) {
				l := newLimiter(b, newStore(b, []string{server.Addr}, memcachedstore.Timeout(patience)), fmt.Sprintf("b-%d-%d-%d", goroutines, keys, b.N), core.PerHour(core.MaxQuota))
				var next atomic.Int64
				var wg sync.WaitGroup
				for range goroutines {
					wg.Go(func() {
						for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
							if _, err := take(l, fmt.Sprint(i%int64(keys))); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
			})
		}
	}
}

// CASES 83: the client has hung up, and its hits count all the same.
func TestACanceledTakeIsCharged(t *testing.T) {
	l := newLimiter(t, newStore(t, []string{memcachedtest.Start(t).Addr}, memcachedstore.Timeout(patience)), "canceled", core.PerHour(100))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 {
		_, _ = l.Take(ctx, 1, core.Hit{Rule: "r", Key: "k"})
	}
	for end := time.Now().Add(patience); left(t, l, "k") != 80; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d left after 20 takes of 100", left(t, l, "k"))
		}
	}
}
