package memcachedstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
)

func TestWrongOptionsAreNamed(t *testing.T) {
	_, err := memcachedstore.New(nil, memcachedstore.Timeout(0), memcachedstore.IdleConnections(0), memcachedstore.Clock(nil), nil)
	if !errors.Is(err, core.ErrConfig) {
		t.Fatal(err)
	}
	for _, want := range []string{"servers: none", "Timeout: 0s", "IdleConnections: 0", "Clock: nil"} {
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

func TestANilOptionChangesNoLifetime(t *testing.T) {
	if got, want := memcachedstore.LongestLifetime(nil), memcachedstore.LongestLifetime(); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// Each option takes the least value that its comment names.
func TestTheLeastValuesOfOptions(t *testing.T) {
	for name, c := range map[string]struct {
		opt  memcachedstore.Option
		fine bool
	}{
		"Timeout: 1ms":       {memcachedstore.Timeout(time.Millisecond), true},
		"Timeout: 999.999µs": {memcachedstore.Timeout(time.Millisecond - 1), false},
		"IdleConnections: 1": {memcachedstore.IdleConnections(1), true},
		"IdleConnections: 0": {memcachedstore.IdleConnections(0), false},
	} {
		s, err := memcachedstore.New([]string{"127.0.0.1:1"}, c.opt)
		if c.fine != (err == nil) || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = s.Close()
		}
	}
}

// Items are kept for two seconds longer than they are needed, and for a minute if
// the application has the clock: so much shorter is the longest lifetime.
func TestTheLongestLifetimeDependsOnTheClock(t *testing.T) {
	const most = 30*24*time.Hour - time.Second
	if got, want := memcachedstore.LongestLifetime(), most-2*time.Second; got != want {
		t.Errorf("with memcached's clock %v, want %v", got, want)
	}
	if got, want := memcachedstore.LongestLifetime(memcachedstore.Clock(time.Now)), most-time.Minute; got != want {
		t.Errorf("with a clock %v, want %v", got, want)
	}
}

// A denial is remembered in the process, so that memcached is not asked again,
// unless the option says otherwise.
func TestADenialIsRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		opts []memcachedstore.Option
		asks bool
	}{"remembered": {nil, false}, "asked": {[]memcachedstore.Option{memcachedstore.WithoutDenialCache()}, true}} {
		server := memcachedtest.Start(t)
		l := newLimiter(t, newStore(t, []string{server.Addr}, append(c.opts, memcachedstore.Timeout(patience), memcachedstore.Clock(func() time.Time { return time.Unix(1_764_000_000, 0) }))...), name, core.PerHour(1))
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
	}
}

// A process binds a limiter's name once for the same servers.
func TestANameIsBoundOnceForTheServers(t *testing.T) {
	rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(3)}}}
	open := func(servers []string, opts ...memcachedstore.Option) *memcachedstore.Store {
		s, err := memcachedstore.New(servers, opts...)
		if err != nil {
			t.Fatal(err)
		}
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
