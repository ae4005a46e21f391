package core_test

import (
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

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
