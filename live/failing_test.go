package live_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

// failing is a store that does nothing for a context that has ended, and fails if there is
// an error to fail with.
type failing struct {
	core.Store
	err error
}

func (f *failing) Open(name string, rules []core.StoreRule) (core.Counters, error) {
	c, err := f.Store.Open(name, rules)
	return failingCounters{c, f}, err
}

type failingCounters struct {
	core.Counters
	store *failing
}

func (c failingCounters) Do(ctx context.Context, b *core.Batch) error {
	if err := errors.Join(ctx.Err(), c.store.err); err != nil {
		return err
	}
	return c.Counters.Do(ctx, b)
}

const unblockAlice = `{"do":"unblock","limiter":"api","rule":"user","key":"alice"}`

func TestAnActionThatFailsIsLogged(t *testing.T) {
	store := &failing{core.Must(core.NewMemory(core.MemoryConfig{})), errors.New("the disk is full")}
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{Store: store})
	if got := s.post(unblockAlice); got.status != http.StatusServiceUnavailable || strings.Contains(got.Error, "disk") {
		t.Errorf("%+v", got)
	}
	log := s.log.String()
	for _, want := range []string{"an action failed", "who=olga", "key=alice", "the disk is full"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q: %s", want, log)
		}
	}
	if strings.Contains(log, "was done") {
		t.Error(log)
	}
}

func TestALookThatFailsIsLogged(t *testing.T) {
	store := &failing{core.Must(core.NewMemory(core.MemoryConfig{})), errors.New("the disk is full")}
	s := newSite(t, live.Config{}, core.Config{Store: store})
	if got := s.post(`{"do":"look","limiter":"api","rule":"user","key":"alice"}`); got.status != http.StatusServiceUnavailable || strings.Contains(got.Error, "disk") {
		t.Errorf("%+v", got)
	}
	if log := s.log.String(); !strings.Contains(log, "the store failed") || !strings.Contains(log, "the disk is full") {
		t.Error(log)
	}
}

// What was begun is done, also if the browser goes away.
func TestAnUnblockWhoseClientHangsUpIsDone(t *testing.T) {
	store := &failing{Store: core.Must(core.NewMemory(core.MemoryConfig{}))}
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{Store: store})
	s.take(3, "alice")
	if got := gone(s.page, http.MethodPost, "/", unblockAlice); got != http.StatusOK {
		t.Errorf("status %d: %s", got, s.log)
	}
	if !s.limiter.Allow(t.Context(), core.Hit{Rule: "user", Key: "alice"}) {
		t.Error("alice is not let in")
	}
}

func TestABanWhoseClientHangsUpIsDone(t *testing.T) {
	store := &failing{Store: core.Must(core.NewMemory(core.MemoryConfig{}))}
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{Store: store})
	if got := gone(s.page, http.MethodPost, "/", `{"do":"ban","seconds":60,"limiter":"api","rule":"user","key":"bob"}`); got != http.StatusOK {
		t.Errorf("status %d: %s", got, s.log)
	}
	if s.limiter.Allow(t.Context(), core.Hit{Rule: "user", Key: "bob"}) {
		t.Error("bob is not banned")
	}
}

func TestAKeyThatIsNeverAdmittedAgain(t *testing.T) {
	rule := core.Rule{Name: "user", Limits: []core.Limit{core.PerMinute(0)}}
	s := newSite(t, live.Config{}, core.Config{Rules: []core.Rule{rule}})
	got := s.post(`{"do":"look","limiter":"api","rule":"user","key":"alice"}`)
	if len(got.Limits) != 1 || got.Limits[0].RetryMS != -1 {
		t.Errorf("%+v", got)
	}
}

// The page keeps the beginning of a long key only, which may be that of another one.
func TestAKeyThatIsTooLongToBeKeptCannotBeChosen(t *testing.T) {
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{})
	s.take(5, strings.Repeat("a", 257))
	rows := s.watch()().Limiters[0].Denied
	if len(rows) != 1 || rows[0].Count != 2 {
		t.Fatalf("%+v", rows)
	}
	if got := s.post(`{"do":"unblock","limiter":"api","id":"` + rows[0].ID + `"}`); got.status != http.StatusNotFound {
		t.Errorf("%+v", got)
	}
}
