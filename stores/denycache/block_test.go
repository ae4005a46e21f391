package denycache_test

import (
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

func limiterOver(t *testing.T, inner core.Store, clock *storetest.Clock) *core.Limiter {
	t.Helper()
	store, err := denycache.New(inner, denycache.Config{Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	l, err := core.New(core.Config{Name: "l", Store: store, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(3)}}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What ends a block or forgets all keys is heard at once, although the denial was remembered.
func TestTheEndOfABlockIsHeardAtOnce(t *testing.T) {
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	memory, err := core.NewMemory(core.MemoryConfig{Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	l := limiterOver(t, memory, clock)
	k := core.Hit{Rule: "r", Key: "k"}
	for name, end := range map[string]func() error{
		"a block of no length": func() error { return l.Block(t.Context(), 0, k) },
		"a reset":              func() error { return l.Reset(t.Context(), k) },
		"a reset of all":       func() error { return l.ResetAll(t.Context()) },
	} {
		if err := l.Block(t.Context(), time.Hour, k); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if l.Allow(t.Context(), k) {
				t.Errorf("%s: a blocked key is allowed", name)
			}
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if !l.Allow(t.Context(), k) {
			t.Errorf("%s: the key is still denied", name)
		}
	}
}

func TestAStoreThatCannotBlock(t *testing.T) {
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	memory, err := core.NewMemory(core.MemoryConfig{Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	l := limiterOver(t, &counting{Store: memory}, clock)
	k := core.Hit{Rule: "r", Key: "k"}
	for name, err := range map[string]error{"Block": l.Block(t.Context(), time.Hour, k), "ResetAll": l.ResetAll(t.Context())} {
		if !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Hits that are granted are there at once, although the denial was remembered.
func TestAGrantIsHeardAtOnce(t *testing.T) {
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	l := limiterOver(t, core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now})), clock)
	k := core.Hit{Rule: "r", Key: "k"}
	for range 5 {
		l.Allow(t.Context(), k)
	}
	if d, err := l.Grant(t.Context(), 2, k); err != nil || d.Remaining != 2 || !l.Allow(t.Context(), k) {
		t.Errorf("%v, %v", d, err)
	}
	l = limiterOver(t, &counting{Store: core.Must(core.NewMemory(core.MemoryConfig{}))}, clock)
	if _, err := l.Grant(t.Context(), 2, k); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("of a store that cannot: %v", err)
	}
}
