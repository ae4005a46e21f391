package memcachedstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is a timeout that never passes, for tests of decisions on machines that may be busy.
const patience = 20 * time.Second

func newStore(t testing.TB, servers []string, opts ...memcachedstore.Option) *memcachedstore.Store {
	t.Helper()
	opts = append([]memcachedstore.Option{memcachedstore.Timeout(patience), memcachedstore.AnotherInstance()}, opts...)
	s := core.Must(memcachedstore.New(servers, opts...))
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
	t.Parallel()
	storetest.Vectors(t, factory(memcachedtest.Start(t).Addr))
}

func TestOperations(t *testing.T) {
	t.Parallel()
	storetest.Operations(t, factory(memcachedtest.Start(t).Addr))
}

func TestShared(t *testing.T) {
	t.Parallel()
	addr := memcachedtest.Start(t).Addr
	storetest.Shared(t, func(t testing.TB, clocks ...func() time.Time) (stores []core.Store) {
		for _, clock := range clocks {
			stores = append(stores, factory(addr)(t, clock))
		}
		return stores
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, factory(memcachedtest.Start(t).Addr, memcachedtest.Start(t).Addr), storetest.GivesBack(), storetest.Keeps(30*24*time.Hour))
}

func newLimiter(t testing.TB, s core.Store, name string, limits ...core.Limit) *core.Limiter {
	t.Helper()
	return core.Must(core.New(core.Config{Name: name, Store: s, Rules: []core.Rule{{Name: "r", Limits: limits}}}))
}

func take(l *core.Limiter, key string) (core.Decision, error) {
	return l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: key})
}

func left(t testing.TB, l *core.Limiter, key string) int64 {
	t.Helper()
	return core.Must(l.Peek(context.Background(), 0, core.Hit{Rule: "r", Key: key})).Remaining
}

func TestGuarantees(t *testing.T) {
	t.Parallel()
	server := memcachedtest.Start(t)
	storetest.Guarantees(t, core.Guarantees{Ops: core.AllOps &^ core.OpResetAll, Exact: true, Shared: true, KeepsDeadline: true, OnFailure: core.FailClosed}, func(t testing.TB) storetest.Instances {
		proxy := faultproxy.Start(t, server.Addr)
		store := func() core.Store { return newStore(t, []string{proxy.Addr}, memcachedstore.Timeout(2*time.Second)) }
		return storetest.Instances{Stores: []core.Store{store(), store()}, Gone: func() { proxy.Fail(faultproxy.Swallow, -1) }}
	})
}

func TestWrongOptionsAreNamed(t *testing.T) {
	_, err := memcachedstore.New(nil, memcachedstore.Timeout(time.Millisecond-1), memcachedstore.Clock(nil), nil)
	const c = "floodgate: configuration: "
	if want := c + "Timeout: 999.999µs: must be 1ms or more\n" + c + "Clock: nil: must be a function\n" + c + "servers: none"; !errors.Is(err, core.ErrConfig) || err.Error() != want {
		t.Errorf("%v, want:\n%s", err, want)
	}
	if _, err := memcachedstore.New([]string{"nonsense"}); !errors.Is(err, core.ErrConfig) || !strings.HasPrefix(err.Error(), c+`servers: ["nonsense"]: `) {
		t.Error(err)
	}
	if err := newStore(t, []string{"127.0.0.1:1"}, memcachedstore.Timeout(time.Millisecond)).Ping(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "memcached: ") {
		t.Errorf("Ping of nobody: %v", err)
	}
	if err := newStore(t, []string{memcachedtest.Start(t).Addr}).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// A denial is remembered in the process, so that memcached is not asked again, unless the option says otherwise.
func TestADenialIsRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		opts []memcachedstore.Option
		asks bool
	}{"remembered": {nil, false}, "asked": {[]memcachedstore.Option{memcachedstore.WithoutDenialCache()}, true}} {
		server, now := memcachedtest.Start(t), time.Unix(1_764_000_000, 0)
		l := newLimiter(t, newStore(t, []string{server.Addr}, append(c.opts, memcachedstore.Timeout(patience), memcachedstore.Clock(func() time.Time { return now }))...), name, core.PerHour(1))
		for range 2 {
			_, _ = take(l, "k")
		}
		before := statistic(t, server, "cmd_get")
		if d, err := take(l, "k"); err != nil || d.Allowed {
			t.Errorf("%s: %v, %v", name, d, err)
		}
		if asked := statistic(t, server, "cmd_get") > before; asked != c.asks {
			t.Errorf("%s: memcached was asked: %v", name, asked)
		}
		now = now.Add(2 * time.Hour)
		if d, err := take(l, "k"); err != nil || !d.Allowed {
			t.Errorf("%s: two hours later by the store's clock: %v, %v", name, d, err)
		}
	}
}

// A process binds a limiter's name once for the same servers.
func TestANameIsBoundOnceForTheServers(t *testing.T) {
	rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(3)}}}
	open := func(servers []string, opts ...memcachedstore.Option) *memcachedstore.Store {
		s := core.Must(memcachedstore.New(servers, opts...))
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	servers, swapped := []string{"127.0.0.1:1", "127.0.0.1:2"}, []string{"127.0.0.1:2", "127.0.0.1:1"}
	first, other := open(servers), open(swapped)
	if _, err := first.Open("names", rules); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open("names", rules); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "another store of this process already counts on memcached 127.0.0.1:1,127.0.0.1:2") {
		t.Errorf("another store: %v", err)
	}
	for what, s := range map[string]*memcachedstore.Store{
		"other servers": open(servers[:1]), "another instance": open(servers, memcachedstore.AnotherInstance()),
	} {
		if _, err := s.Open("names", rules); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	_ = first.Close()
	tooLong := []core.StoreRule{{Name: "r", Limits: []core.Limit{{Quota: 1, Window: 24 * time.Hour}, {Quota: 1, Window: core.MaxWindow}}}}
	if _, err := other.Open("names", tooLong); !errors.Is(err, core.ErrConfig) {
		t.Errorf("a limit that memcached cannot hold: %v", err)
	}
	if _, err := other.Open("names", rules); err != nil {
		t.Errorf("after the first store was closed and a failed Open: %v", err)
	}
	opened := 0
	processtest.WaitFor(t, "a store that nothing refers to any more to give up its names", func() bool {
		if _, err := core.Must(memcachedstore.New(servers)).Open("dropped", rules); err == nil {
			opened++
		}
		runtime.GC()
		return opened == 2
	})
}

func TestAClosedStoreDoesNotCount(t *testing.T) {
	addr := memcachedtest.Start(t).Addr
	for name, opts := range map[string][]memcachedstore.Option{"cached": nil, "direct": {memcachedstore.WithoutDenialCache()}} {
		s, again := newStore(t, []string{addr}, opts...), newStore(t, []string{addr})
		l, other := newLimiter(t, s, name, core.PerHour(10)), newLimiter(t, again, name, core.PerHour(10))
		var last core.Decision
		for range 5 {
			if d, err := take(l, "k"); err != nil {
				t.Fatal(err)
			} else {
				last = d
			}
		}
		for range 12 { // denied in the end, and that is remembered
			_, _ = take(l, "denied")
		}
		_ = s.Close()
		_ = s.Close()
		for _, key := range []string{"k", "denied", "new"} {
			if d, err := take(l, key); !errors.Is(err, core.ErrClosed) || d.Allowed {
				t.Errorf("%s, key %s: %v, %v", name, key, d, err)
			}
		}
		hit := core.Hit{Rule: "r", Key: "k"}
		for what, err := range map[string]error{
			"Refund": l.Adjust(t.Context(), last, 0), "Reset": l.Reset(t.Context(), hit), "Ping": s.Ping(t.Context()),
			"Reconfigure": l.Reconfigure(core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(9)}}}}),
		} {
			if !errors.Is(err, core.ErrClosed) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if _, err := s.Open("other", nil); !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s, Open: %v", name, err)
		}
		if got := left(t, other, "k"); got != 5 {
			t.Errorf("%s: %d left of 10 after 5 takes, and others of a closed store", name, got)
		}
	}
}

func TestItemsOutliveTheirWindows(t *testing.T) {
	server := memcachedtest.Start(t)
	for window, want := range map[time.Duration]string{
		time.Millisecond:               "t=61",
		time.Second:                    "t=61",
		time.Second + time.Millisecond: "t=62",
		24 * time.Hour:                 "t=86460",
	} {
		l := newLimiter(t, newStore(t, []string{server.Addr}), fmt.Sprint("ttl", window.Microseconds()), core.Limit{Quota: 5, Window: window, Algorithm: core.FixedWindow})
		for range 2 { // the second take replaces the item
			d := core.Must(take(l, "k"))
			reply := server.MustDo("mg " + d.StoredKey() + " t")
			if got := strings.Fields(strings.Replace(reply, " t", " t=", 1)); len(got) < 2 || got[1] != want && got[1] != want[:2]+fmt.Sprint(atoi(want[2:])-1) {
				t.Errorf("window %v: %q, want %s", window, reply, want)
			}
		}
	}
}

func atoi(s string) (n int) {
	_, _ = fmt.Sscan(s, &n)
	return n
}

// memcached keeps an item for 30 days at most, and the store keeps it a minute longer than it is
// needed: a limit that needs more is rejected, also later.
func TestLimitsOfMoreThanThirtyDays(t *testing.T) {
	const day = 24 * time.Hour
	fixed := func(window time.Duration) core.Limit {
		return core.Limit{Quota: 3, Window: window, Algorithm: core.FixedWindow}
	}
	s := newStore(t, []string{memcachedtest.Start(t).Addr})
	changed := newLimiter(t, s, "changed", fixed(day))
	for i, c := range []struct {
		limit core.Limit
		fits  bool
	}{
		{fixed(29 * day), true}, {core.Limit{Quota: 1, Window: 14 * day}, true}, {fixed(memcachedstore.LongestLifetime), true},
		{fixed(memcachedstore.LongestLifetime + time.Millisecond), false}, {fixed(30 * day), false}, {core.Limit{Quota: 1, Window: 15 * day}, false},
		{core.Limit{Quota: 2, Window: 20 * day, Algorithm: core.TokenBucket, Burst: 4}, false},
		{core.Limit{Quota: 2, Window: day, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: day, Max: 16 * day, Decay: 16 * day}}, false},
	} {
		rules := []core.Rule{{Name: "r", Limits: []core.Limit{c.limit}}}
		_, opened := core.New(core.Config{Name: fmt.Sprint("long", i), Store: s, Rules: rules})
		for _, err := range []error{opened, changed.Reconfigure(core.Config{Rules: rules})} {
			if (err == nil) != c.fits || err != nil && (!errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `rule "r", limit "r": Window: `+c.limit.Window.String())) {
				t.Errorf("%v: %v", c.limit, err)
			}
		}
	}
	if d, err := take(changed, "k"); err != nil || !d.Allowed {
		t.Errorf("after the last change: %v, %v", d, err)
	}
	for length, fits := range map[time.Duration]bool{memcachedstore.LongestLifetime: true, memcachedstore.LongestLifetime + time.Microsecond: false} {
		if err := changed.Block(t.Context(), length, core.Hit{Rule: "r", Key: "k"}); (err == nil) != fits || err != nil && (!errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `limiter "changed": blocking for `+length.String())) {
			t.Errorf("a block for %v: %v", length, err)
		}
	}
}

func TestForeignValuesAreReplaced(t *testing.T) {
	addr := memcachedtest.Start(t).Addr
	client := memcache.New(addr)
	defer client.Close() //nolint:errcheck // of no interest any more
	var log strings.Builder
	l := newLimiter(t, newStore(t, []string{addr}, memcachedstore.WithoutDenialCache(), memcachedstore.Log(slog.New(slog.NewTextHandler(&log, nil)))), "foreign", core.PerHour(5), core.Limit{Quota: 50, Window: 24 * time.Hour})
	d := core.Must(take(l, "k"))
	good := core.Must(client.Get(d.StoredKey())).Value
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
		if item, err := client.Get(d.StoredKey()); err != nil || item.Flags != 0 { // a client that compresses would read them
			t.Errorf("%s: stored %+v, %v", name, item, err)
		}
	}
	if strings.Count(log.String(), "cannot be read") != 1 {
		t.Errorf("logged: %s", &log)
	}
}
