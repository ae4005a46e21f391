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
