package live_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// away is a store that can block and may not answer.
type away struct {
	core.Store
	gone atomic.Bool
}

func (a *away) Open(name string, rules []core.StoreRule) (core.Counters, error) {
	c, err := a.Store.Open(name, rules)
	return awayCounters{c, a}, err
}

type awayCounters struct {
	core.Counters
	store *away
}

func (c awayCounters) Do(ctx context.Context, b *core.Batch) error {
	if c.store.gone.Load() {
		return errors.New("connection refused")
	}
	return c.Counters.Do(ctx, b)
}

// While the store is away, the page says that it shows the counters of this process, and that an
// order is done in this process only. It is no failure, and the log says so.
func TestOrdersWhileTheStoreIsAway(t *testing.T) {
	inner := &away{Store: core.Must(core.NewMemory(core.MemoryConfig{}))}
	store := core.Must(resilient.New(inner, resilient.Config{Log: slog.New(slog.DiscardHandler)}))
	defer func() { _ = store.Close() }()
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{Store: store})
	s.take(1, "alice")
	look := strings.Replace(unblockAlice, "unblock", "look", 1)
	if got := s.post(look); got.Note != "" || got.Limits[0].Remaining != 2 {
		t.Errorf("%+v", got)
	}
	inner.gone.Store(true)
	for _, row := range []struct {
		order, note string
		remaining   int64
	}{
		{look, "these are the counters of this process", 2},
		{`{"do":"ban","seconds":60,"limiter":"api","rule":"user","key":"alice"}`, "only this process bans the key", 0},
		{look, "these are the counters of this process", 0},
		{unblockAlice, "Unblock it again when the store answers", 3},
	} {
		s.log.Reset()
		got := s.post(row.order)
		if got.status != http.StatusOK || got.Error != "" || !strings.Contains(got.Note, row.note) || len(got.Limits) != 1 || got.Limits[0].Remaining != row.remaining {
			t.Errorf("%s: %+v", row.order, got)
		}
		if log := s.log.String(); row.order != look && (!strings.Contains(log, `level=WARN msg="live: an action was done in this process only"`) || !strings.Contains(log, "who=olga") || !strings.Contains(log, "connection refused")) || row.order == look && log != "" {
			t.Errorf("%s: the log has %q", row.order, log)
		}
	}
}

func (g *guard) UnblockAddress(_ context.Context, address string) error {
	g.forgot = append(g.forgot, "address "+address)
	return g.err
}

// The answer to forget says what is let in, and what is not.
func TestAnAddressIsLetIn(t *testing.T) {
	s, g := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{}), &guard{}
	s.page.ManageLogin("login", g)
	for key, want := range map[string]struct{ forgot, note string }{
		"alice":       {"[alice]", "An address that has tried too often is still denied"},
		"192.0.2.1":   {"[192.0.2.1 address 192.0.2.1]", "The failures of a username still count"},
		"2001:db8::1": {"[2001:db8::1 address 2001:db8::1]", "The failures of a username still count"},
	} {
		g.forgot = nil
		got := s.post(`{"do":"forget","limiter":"login","key":"` + key + `"}`)
		if got.status != http.StatusOK || fmt.Sprint(g.forgot) != want.forgot || !strings.Contains(got.Note, want.note) {
			t.Errorf("%s: %+v, %v", key, got, g.forgot)
		}
	}
	g.err = fmt.Errorf("resilient: %w", core.ErrDegraded)
	if got := s.post(`{"do":"forget","limiter":"login","key":"alice"}`); got.status != http.StatusOK || !strings.Contains(got.Note, "Forget them again when the store answers") {
		t.Errorf("%+v", got)
	}
}
