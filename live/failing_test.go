package live_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/live"
	"github.com/floodgate-go/floodgate/stores/resilient"
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

// An attack with keys out of two millions: half of the requests follow a Zipf distribution, the others
// are uniform noise. The page shows the keys that were denied most, and keeps no more memory
// in the second half of the attack than in the first.
func TestAnAttackWithManyKeys(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // need not be secret
	zipf := rand.NewZipf(r, 1.1, 1, 1_000_000)
	s := newSite(t, live.Config{ShowKey: func(_, _, key string) string { return key }}, core.Config{
		Store: core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 50_000})), // memory of its own that does not grow
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(1)}}},
	})
	denied := make([]int, 2_000_001)
	attack := func(requests int) {
		for i := range requests {
			k := int(zipf.Uint64()) //nolint:gosec // at most a million
			if i%2 == 0 {
				k = 1_000_000 + r.IntN(1_000_000)
			}
			if !s.limiter.Allow(context.Background(), core.Hit{Rule: "user", Key: strconv.Itoa(k)}) {
				denied[k]++
			}
		}
	}
	attack(150_000)
	before := inUse()
	attack(150_000)
	grown := inUse() - before
	t.Logf("the heap has grown by %d bytes in the second half", grown)
	if grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes in the second half", grown)
	}

	keys := make([]int, len(denied))
	for k := range keys {
		keys[k] = k
	}
	slices.SortFunc(keys, func(a, b int) int { return cmp.Compare(denied[b], denied[a]) })
	least := denied[keys[19]] // a key that was denied as often as the last of them is right too
	found, shown := 0, s.watch()().Limiters[0].Denied
	for _, k := range shown {
		if n, err := strconv.Atoi(k.Label); err == nil && denied[n] >= least {
			found++
		}
	}
	t.Logf("%d of the true top 20", found)
	if len(shown) != 20 || found < 19 {
		t.Errorf("%d keys are shown, %d of them of the true top 20", len(shown), found)
	}
}

// inUse returns the bytes that are in use.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // what the first one has only found to be unused in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // below 2^63
}

// An observer of a limiter whose rules change keeps the counts of those that stay.
func TestTheRulesOfAnotherConfiguration(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	s.take(4, "alice")
	rules := []core.Rule{{Name: "new", Limits: []core.Limit{core.PerHour(1)}}, userRule}
	if err := s.limiter.Reconfigure(core.Config{Name: "api", Observer: s.page, Rules: rules}); err != nil {
		t.Fatal(err)
	}
	s.take(2, "alice")
	l := s.watch()().Limiters[0]
	if len(l.Rules) != 2 || len(l.Denied) != 1 || l.Denied[0].Count != 3 || l.Denied[0].Rule != "user" {
		t.Errorf("%+v", l)
	}
}

// A viewer sees the page while configurations with new rules come into force.
func TestRulesThatComeWhileSomebodyWatches(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			name := fmt.Sprintf("rule-%d", n)
			_ = s.limiter.Reconfigure(core.Config{Name: "api", Observer: s.page, Rules: []core.Rule{{Name: name, Limits: []core.Limit{core.PerMinute(0)}}}})
			_, _ = s.limiter.Take(context.Background(), 1, core.Hit{Rule: name, Key: "k"})
		}
	}()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 300 {
		r := httptest.NewRequestWithContext(ended, http.MethodGet, "/?events", nil)
		s.page.ServeHTTP(httptest.NewRecorder(), r)
	}
	close(stop)
	<-done
}

// Of a rule that is gone, its name is kept, and not what it has counted.
func TestRulesThatAreRenamedForEver(t *testing.T) {
	page := core.Must(live.New(live.Config{}))
	defer page.Close() //nolint:errcheck // always nil
	rename := func(from, to int) {
		for n := from; n < to; n++ {
			page.Observe("api", []core.Rule{userRule, {Name: fmt.Sprint("rule ", n), Limits: userRule.Limits}})
		}
	}
	rename(0, 100)
	before := inUse()
	rename(100, 5100)
	if grown := (inUse() - before) / 5000; grown > 300 {
		t.Errorf("%d bytes for each rule that is gone", grown)
	}
}

const banAlice = `{"do":"ban","seconds":60,"limiter":"api","rule":"user","key":"alice"}`

// plain is a store that several processes share and that can block no key.
type plain struct{ *core.Memory }

func (plain) Guarantees() core.Guarantees {
	return core.Guarantees{Ops: core.AllOps &^ core.OpBlock, Exact: true, Shared: true, OnFailure: core.FailClosed}
}

func (p plain) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := p.Memory.Open(limiter, rules)
	return plainCounters{c}, err
}

type plainCounters struct{ core.Counters }

func (c plainCounters) Do(ctx context.Context, b *core.Batch) error {
	if b.Op == core.OpBlock {
		return core.ErrUnsupported
	}
	return c.Counters.Do(ctx, b)
}

// A store that can block no key has not failed: the operator reads that a ban is impossible there.
func TestABanThatTheStoreCannotDo(t *testing.T) {
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{Store: plain{core.Must(core.NewMemory(core.MemoryConfig{}))}})
	if got := s.post(banAlice); got.status != http.StatusNotImplemented || !strings.Contains(got.Error, "cannot do that") {
		t.Errorf("%+v", got)
	}
	if l := s.watch()().Limiters[0]; !l.Managed || !l.Shared {
		t.Errorf("managed %t, shared %t, want a shared store", l.Managed, l.Shared)
	}
}

// The bounds of an order are those that the errors name.
func TestOrdersAtTheirBounds(t *testing.T) {
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{})
	const longest = 16 << 10
	whole := unblockAlice + strings.Repeat(" ", longest-len(unblockAlice))
	for name, row := range map[string]struct {
		order   string
		headers []string
		status  int
	}{
		"the longest order":    {whole, nil, http.StatusOK},
		"a byte more":          {whole + " ", nil, http.StatusRequestEntityTooLarge},
		"with a charset":       {unblockAlice, []string{"Content-Type", "Application/JSON; charset=utf-8"}, http.StatusOK},
		"a ban of a second":    {strings.Replace(banAlice, "60", "1", 1), nil, http.StatusOK},
		"a ban of 0 seconds":   {strings.Replace(banAlice, "60", "0", 1), nil, http.StatusBadRequest},
		"the longest ban":      {strings.Replace(banAlice, "60", "31622400", 1), nil, http.StatusOK},
		"a second more":        {strings.Replace(banAlice, "60", "31622401", 1), nil, http.StatusBadRequest},
		"nothing is the order": {"", nil, http.StatusBadRequest},
	} {
		if got := s.post(row.order, row.headers...); got.status != row.status {
			t.Errorf("%s: %+v, want %d", name, got, row.status)
		}
	}
}

// A wait is rounded up: a request that comes when it has passed is allowed.
func TestTheWaitOfALookIsRoundedUp(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	rule := core.Rule{Name: "user", Limits: []core.Limit{{Quota: 3, Window: time.Minute, Algorithm: core.FixedWindow}}}
	s := newSite(t, live.Config{}, core.Config{Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now})), Rules: []core.Rule{rule}})
	s.take(3, "alice")
	clock.Advance(time.Microsecond)
	if got := s.post(strings.Replace(unblockAlice, "unblock", "look", 1)); len(got.Limits) != 1 || got.Limits[0].RetryMS != 60_000 {
		t.Errorf("%+v, want a wait of 60000 ms", got)
	}
}

// An address is let in although the failures of the username could not be forgotten.
func TestAnAddressIsLetInIfAUsernameCannotBe(t *testing.T) {
	s, g := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{}), &guard{err: errors.New("the disk is full")}
	s.page.ManageLogin("login", g)
	if got := s.post(`{"do":"forget","limiter":"login","key":"192.0.2.1"}`); got.status != http.StatusServiceUnavailable || fmt.Sprint(g.forgot) != "[192.0.2.1 address 192.0.2.1]" {
		t.Errorf("%+v, %v", got, g.forgot)
	}
}

// The logins are in the order of their names.
func TestTheLoginsOfAPageAreSorted(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	names := strings.Fields("admin blog docs forum mail shop wiki")
	for _, name := range names {
		s.page.ManageLogin(name, &guard{})
	}
	if got := s.watch()().Logins; !slices.Equal(got, names) {
		t.Errorf("%v", got)
	}
}

// No answer of the page is stored, named to another site, or taken for another kind of content.
func TestTheHeadersOfEveryAnswer(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	for _, row := range []struct {
		method, query string
		status        int
		kind          string
	}{
		{http.MethodGet, "", 200, "text/html; charset=utf-8"},
		{http.MethodGet, "?events", 200, "text/event-stream"},
		{http.MethodHead, "", 200, "text/html; charset=utf-8"},
		{http.MethodPost, "", 415, "application/json"},
		{http.MethodPut, "", 405, "application/json"},
		{http.MethodHead, "?events", 200, "text/html; charset=utf-8"}, // not a stream, which does not end
	} {
		r, err := http.NewRequestWithContext(t.Context(), row.method, s.url()+row.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		h := resp.Header
		if resp.StatusCode != row.status || h.Get("Content-Type") != row.kind {
			t.Errorf("%s %s: %d %s, want %d %s", row.method, row.query, resp.StatusCode, h.Get("Content-Type"), row.status, row.kind)
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s %s: %v", row.method, row.query, h)
		}
		if allow := h.Get("Allow"); (allow == "GET, HEAD, POST") != (row.status == http.StatusMethodNotAllowed) {
			t.Errorf("%s %s: Allow: %q", row.method, row.query, allow)
		}
	}
}
