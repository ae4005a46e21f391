package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/live"
)

// sum returns what all events that a viewer has got say of a rule.
func (v *viewer) sum(rule int) (allowed, denied, dryRun int) {
	for i, s := range v.all() {
		if i > 0 && s.Second != i {
			panic("a second is missing")
		}
		r := s.Limiters[0].Rules[rule]
		allowed += r.Allowed[len(r.Allowed)-1]
		denied += r.Denied[len(r.Denied)-1]
		dryRun += r.DryRun[len(r.DryRun)-1]
	}
	return allowed, denied, dryRun
}

// However many goroutines decide at a time, no decision is missing and none is there twice.
func TestCountsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := core.Rule{Name: "user", Limits: []core.Limit{core.PerHour(10_000)}}
		page, l := newPage(t, live.Config{}, user)
		v := follow(t, page)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 5_000 {
					if i%1000 == 0 {
						time.Sleep(300 * time.Millisecond)
					}
					allow(l, 1, fmt.Sprint("user ", g%2))
				}
			})
		}
		wg.Wait()
		time.Sleep(2 * time.Second)
		if allowed, denied, dryRun := v.sum(0); allowed != 20_000 || denied != 20_000 || dryRun != 0 {
			t.Errorf("user: %d allowed, %d denied, %d dry run, want 20000 of each of the first two", allowed, denied, dryRun)
		}
		last := v.all()[len(v.all())-1].Limiters[0]
		if len(last.Denied) != 2 || last.Denied[0].Count+last.Denied[1].Count != 20_000 {
			t.Errorf("denied most: %+v", last.Denied)
		}
	})
}

// Up to 200,000 decisions a second, each is noted for its key. Of more, a sample is, and the
// counts of keys are estimates; those of rules stay exact.
func TestMoreDecisionsThanAreNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{ShowKey: func(_, _, key string) string { return key }}))
		t.Cleanup(func() { _ = page.Close() })
		decided := page.Observe("api", []core.Rule{userRule}).Decided
		v := follow(t, page)
		for i := range 1_000_000 { // a rhythm of 64, in which a few places belong to many keys
			key := fmt.Sprint("noise ", i%20_011)
			switch n := i % 64; {
			case n >= 1 && n <= 38:
				key = "a"
			case n > 38 && n < 52:
				key = "b"
			}
			decided(context.Background(), core.Observation{Reason: core.ReasonOverLimit, Key: key, Capacity: 3})
		}
		time.Sleep(1500 * time.Millisecond)
		if _, denied, _ := v.sum(0); denied != 1_000_000 {
			t.Errorf("%d denied", denied)
		}
		keys := v.all()[1].Limiters[0].Denied
		for i, want := range []int{38_000_000 / 64, 13_000_000 / 64} {
			k := keys[i]
			t.Logf("%s: %d, and up to %d more", k.Label, k.Count, k.Over)
			if math.Abs(float64(k.Count-want)) > 0.05*float64(want) || k.Label != string(rune('a'+i)) {
				t.Errorf("place %d: %+v, want about %d", i, k, want)
			}
		}
		for range 1_000_001 {
			decided(context.Background(), core.Observation{Reason: core.ReasonWithinLimits, Allowed: true, Key: "n", Capacity: 3})
		}
		time.Sleep(time.Second)
		if n := v.all()[2].Limiters[0].Near[0].Count; n < 950_000 || n > 1_050_000 || (n-200_000)%64 != 0 {
			t.Errorf("%d are noted near their limit, want 200000 and samples of 64", n)
		}
		for range 100_000 { // another second: all are noted
			decided(context.Background(), core.Observation{Reason: core.ReasonOverLimit, Key: "a", Capacity: 3})
		}
		time.Sleep(time.Second)
		if now := v.all()[3].Limiters[0].Denied[0].Count; now != keys[0].Count+100_000 {
			t.Errorf("%d are noted of 100000", now-keys[0].Count)
		}
	})
}

// What is allowed only because of DryRun was denied to nobody.
func TestADryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{}))
		t.Cleanup(func() { _ = page.Close() })
		l := core.Must(core.New(core.Config{Name: "api", Observer: page, DryRun: true, Rules: []core.Rule{{
			Name: "user", Limits: userRule.Limits,
			Key: func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, "alice"...), nil },
		}}}))
		v := follow(t, page)
		for range 5 {
			l.Check(floodgatetest.NewRequest(http.MethodGet, "/"))
		}
		time.Sleep(1500 * time.Millisecond)
		if allowed, denied, dryRun := v.sum(0); allowed != 3 || denied != 0 || dryRun != 2 {
			t.Errorf("%d allowed, %d denied, %d dry run", allowed, denied, dryRun)
		}
		if keys := v.all()[1].Limiters[0].Denied; len(keys) > 0 {
			t.Errorf("denied most: %+v", keys)
		}
	})
}

// Of more keys than the page keeps, a count is never too large, and Over says how much it may
// be too small.
func TestMoreKeysThanAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{}))
		t.Cleanup(func() { _ = page.Close() })
		decided := page.Observe("api", []core.Rule{userRule}).Decided
		v := follow(t, page)
		for i := range 10_000 {
			decided(context.Background(), core.Observation{Reason: core.ReasonOverLimit, Key: fmt.Sprint(i), Capacity: 3})
		}
		for range 100 {
			decided(context.Background(), core.Observation{Reason: core.ReasonOverLimit, Key: "a", Capacity: 3})
		}
		time.Sleep(1500 * time.Millisecond)
		if k := v.all()[1].Limiters[0].Denied[0]; k.Count != 100 || k.Over < 1 {
			t.Errorf("%+v, want 100 and more that are possible", k)
		}
	})
}

// What came before a minute counts half, and a key that is no longer near its limit is no
// longer shown.
func TestWhatGetsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{}))
		t.Cleanup(func() { _ = page.Close() })
		time.Sleep(90500 * time.Millisecond) // the limiter comes later than the page
		l := core.Must(core.New(core.Config{Name: "api", Observer: page, Rules: []core.Rule{userRule}}))
		allow(l, 11, "alice")
		v := follow(t, page)
		at := func(second int) ([]int, []int) {
			for _, s := range v.all() {
				if s.Second == second {
					var denied, near []int
					for _, k := range s.Limiters[0].Denied {
						denied = append(denied, k.Count)
					}
					for _, k := range s.Limiters[0].Near {
						near = append(near, k.Ago)
					}
					return denied, near
				}
			}
			t.Fatalf("no second %d", second)
			return nil, nil
		}
		time.Sleep(200 * time.Second)
		for second, want := range map[int]string{90: "[8] [0]", 119: "[8] [29]", 120: "[4] [30]", 150: "[4] [60]", 151: "[4] []", 180: "[2] []", 240: "[1] []", 285: "[1] []"} {
			denied, near := at(second)
			if got := fmt.Sprint(denied, near); got != want {
				t.Errorf("in second %d: %s, want %s", second, got, want)
			}
		}
	})
}

// What no limit has decided is counted for the limiter as a whole, if it matters.
func TestWhatNoLimitHasDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{}))
		t.Cleanup(func() { _ = page.Close() })
		decided := page.Observe("api", []core.Rule{userRule}).Decided
		v := follow(t, page)
		for _, o := range []core.Observation{
			{Reason: core.ReasonFailed, Rule: -1}, {Reason: core.ReasonCanceled, Rule: -1},
			{Reason: core.ReasonSkipped, Rule: -1, Allowed: true}, {Reason: core.ReasonNoRule, Rule: -1, Allowed: true},
			{Reason: core.ReasonBadRequest, Rule: -1}, {Reason: core.ReasonOverLimit, Rule: -1},
			{Reason: core.ReasonWithinLimits, Capacity: 3, Remaining: 3, Allowed: true, Degraded: true},
			{Reason: core.ReasonOverLimit, Capacity: 3, Degraded: true},
		} {
			decided(context.Background(), o)
		}
		page.Observe("api", []core.Rule{userRule}) // as Reconfigure does: the counts stay
		time.Sleep(1500 * time.Millisecond)
		if s := v.all()[1].Limiters[0].Store; s.Errors != 1 || s.Degraded != 2 {
			t.Errorf("%+v", s)
		}
		if allowed, denied, dryRun := v.sum(0); allowed != 1 || denied != 1 || dryRun != 0 {
			t.Errorf("%d allowed, %d denied, %d dry run", allowed, denied, dryRun)
		}
	})
}

// The store's figures are those of the second that has passed.
func TestHowLongTheStoreTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := core.Must(live.New(live.Config{}))
		t.Cleanup(func() { _ = page.Close() })
		stored := page.Observe("api", []core.Rule{userRule}).Stored
		v := follow(t, page)
		stored(context.Background(), "take", 30*time.Millisecond, nil)
		stored(context.Background(), "take", 10*time.Millisecond, context.Canceled)
		time.Sleep(1500 * time.Millisecond)
		stored(context.Background(), "take", 2*time.Millisecond, nil)
		time.Sleep(2 * time.Second)
		for second, want := range []string{"{0 0 0 0 0 0}", "{2 1 0 0 20 30}", "{1 0 0 0 2 2}", "{0 0 0 0 0 0}"} {
			if got := fmt.Sprint(v.all()[second].Limiters[0].Store); got != want {
				t.Errorf("second %d: %s, want %s", second, got, want)
			}
		}
	})
}

func TestThePageAllocatesNothing(t *testing.T) {
	page := core.Must(live.New(live.Config{}))
	defer page.Close() //nolint:errcheck // always nil
	decided := page.Observe("api", []core.Rule{userRule}).Decided
	for name, o := range map[string]core.Observation{
		"allowed": {Remaining: 2, Capacity: 3, Allowed: true},
		"near":    {Remaining: 0, Capacity: 3, Allowed: true, Key: "alice"},
		"denied":  {Reason: core.ReasonOverLimit, Capacity: 3, Key: "alice"},
	} {
		if n := testing.AllocsPerRun(1000, func() { decided(context.Background(), o) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// watched returns what tells a page of one rule about a decision, and a viewer of the page.
func watched(t *testing.T) (decided func(context.Context, core.Observation), v *viewer) {
	t.Helper()
	page := core.Must(live.New(live.Config{ShowKey: func(_, _, key string) string { return key }}))
	t.Cleanup(func() { _ = page.Close() })
	return page.Observe("api", []core.Rule{userRule}).Decided, follow(t, page)
}

// A key is near its limit if it has used more than half of it. The key that has used the
// largest share comes first, however often each key comes.
func TestTheKeysThatAreNearTheirLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decided, v := watched(t)
		for i, remaining := range []int64{10, 6, 5, 4, 1, 3, 0, 2} {
			for range 10 - i { // the first keys come most often
				decided(context.Background(), core.Observation{Reason: core.ReasonWithinLimits, Allowed: true, Key: fmt.Sprint(remaining), Remaining: remaining, Capacity: 10})
			}
		}
		time.Sleep(1500 * time.Millisecond)
		var near []string
		for _, k := range v.all()[1].Limiters[0].Near {
			near = append(near, fmt.Sprintf("%s: %.1f", k.Label, k.Used))
		}
		if got, want := fmt.Sprint(near), "[0: 1.0 1: 0.9 2: 0.8 3: 0.7 4: 0.6]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// If there are more decisions in a second than are noted, one outside the sample leaves no key.
func TestADecisionThatIsNotNotedLeavesNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decided, v := watched(t)
		for i := range 200_001 {
			key := "a"
			if i == 200_000 { // not in the sample, which is the same in all processes
				key = "b"
			}
			decided(context.Background(), core.Observation{Reason: core.ReasonWithinLimits, Allowed: true, Key: key, Capacity: 3})
			decided(context.Background(), core.Observation{Reason: core.ReasonOverLimit, Key: key, Capacity: 3})
		}
		time.Sleep(1500 * time.Millisecond)
		l := v.all()[1].Limiters[0]
		if len(l.Near) != 1 || len(l.Denied) != 1 || l.Near[0].Label != "a" || l.Denied[0].Label != "a" {
			t.Errorf("near: %+v, denied: %+v, want a alone", l.Near, l.Denied)
		}
	})
}

// An observation of a rule that the page was not told about is counted for no rule.
func TestAnObservationOfAnUnknownRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decided, v := watched(t)
		for _, rule := range []int{-1, 1, 2} {
			decided(context.Background(), core.Observation{Rule: rule, Reason: core.ReasonWithinLimits, Allowed: true, Key: "a", Capacity: 3})
		}
		time.Sleep(1500 * time.Millisecond)
		if allowed, denied, dryRun := v.sum(0); allowed+denied+dryRun != 0 {
			t.Errorf("%d allowed, %d denied, %d dry run", allowed, denied, dryRun)
		}
	})
}

// viewer is a browser that follows a page without a network.
type viewer struct {
	mu       sync.Mutex
	header   http.Header
	status   int
	deadline time.Time
	slow     time.Duration // how long the next event takes to be sent
	broken   bool          // no event can be sent
	got      []shown
	ended    chan struct{}
	leave    context.CancelFunc
}

func (v *viewer) Header() http.Header    { return v.header }
func (v *viewer) WriteHeader(status int) { v.status = status }

func (v *viewer) Flush() {
	if !v.deadline.After(time.Now()) {
		panic("a browser that reads nothing would hold this for ever")
	}
}

func (v *viewer) SetWriteDeadline(t time.Time) error {
	v.deadline = t
	return nil
}

func (v *viewer) Write(text []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	time.Sleep(v.slow)
	v.slow = 0
	if v.broken || time.Now().After(v.deadline) {
		return 0, errors.New("the browser reads nothing")
	}
	var s shown
	if err := json.Unmarshal(text[len("data: "):], &s); err != nil {
		return 0, err
	}
	v.got = append(v.got, s)
	return len(text), nil
}

func (v *viewer) set(slow time.Duration, broken bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.slow, v.broken = slow, broken
}

// all returns the events until now.
func (v *viewer) all() []shown {
	synctest.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.got
}

func (v *viewer) gone() bool {
	synctest.Wait()
	select {
	case <-v.ended:
		return true
	default:
		return false
	}
}

// follow opens the page in a browser, in a bubble of synctest.
func follow(t *testing.T, page *live.Page) *viewer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	v := &viewer{header: http.Header{}, status: http.StatusOK, ended: make(chan struct{}), leave: cancel}
	go func() {
		defer close(v.ended)
		page.ServeHTTP(v, httptest.NewRequestWithContext(ctx, http.MethodGet, "/?events", nil))
	}()
	synctest.Wait()
	return v
}

// newPage returns a page and a limiter, for a bubble of synctest.
func newPage(t *testing.T, c live.Config, rules ...core.Rule) (*live.Page, *core.Limiter) {
	t.Helper()
	c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	page := core.Must(live.New(c))
	t.Cleanup(func() { _ = page.Close() })
	if rules == nil {
		rules = []core.Rule{userRule}
	}
	return page, core.Must(core.New(core.Config{Name: "api", Observer: page, Rules: rules}))
}

func allow(l *core.Limiter, n int, key string) {
	for range n {
		l.Allow(context.Background(), core.Hit{Rule: "user", Key: key})
	}
}

// An event is made once for all who look, and not at all if nobody does.
func TestEventsAreMadeOnceForAllViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		page, l := newPage(t, live.Config{ShowKey: func(string, string, string) string { asked++; return "a" }})
		allow(l, 4, "alice") // one row of those denied, and one of those near their limit
		var viewers []*viewer
		for range 5 {
			viewers = append(viewers, follow(t, page))
		}
		time.Sleep(10500 * time.Millisecond)
		for _, v := range viewers {
			if got := v.all(); len(got) != 11 || got[10].Second != 10 {
				t.Errorf("%d events in 10 seconds", len(got))
			}
			v.leave()
		}
		if asked != 22 {
			t.Errorf("%d texts of keys for 11 events, want 22", asked)
		}
		time.Sleep(10 * time.Second)
		if asked != 22 {
			t.Errorf("%d texts of keys while nobody looks", asked-22)
		}
	})
}

// A browser that has missed seconds gets all of them again, and its counts are right.
func TestAViewerThatMissesSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, l := newPage(t, live.Config{})
		v := follow(t, page)
		v.set(4500*time.Millisecond, false)
		for range 8 {
			allow(l, 1, "alice")
			time.Sleep(time.Second)
		}
		got := v.all()
		for i, s := range got {
			if whole := len(s.Limiters[0].Rules[0].Allowed) == 120; whole != (i == 0 || s.Second != got[i-1].Second+1) {
				t.Errorf("event %d of second %d: %d counts", i, s.Second, len(s.Limiters[0].Rules[0].Allowed))
			}
		}
		if last := got[len(got)-1]; len(got) != 6 || last.Second != 8 {
			t.Errorf("%d events, the last one of second %d", len(got), last.Second)
		}
	})
}

// A browser that reads nothing is let go, and so is one whose connection is broken.
func TestABrowserThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, _ := newPage(t, live.Config{})
		slow, broken := follow(t, page), follow(t, page)
		slow.set(time.Minute, false)
		broken.set(0, true)
		time.Sleep(90 * time.Second)
		if !slow.gone() || !broken.gone() {
			t.Errorf("let go: %t, %t", slow.gone(), broken.gone())
		}
		well := follow(t, page)
		time.Sleep(90 * time.Second) // each event has ten seconds of its own
		if well.gone() || len(well.all()) != 91 {
			t.Errorf("%d events", len(well.all()))
		}
	})
}

// A closed page says so.
func TestAClosedPageSaysSo(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	_ = s.page.Close()
	if got := s.ask(s.page); got.status != http.StatusServiceUnavailable || got.Error != "this process has closed the page" {
		t.Errorf("%+v", got)
	}
}

// A writer that cannot send an event at once gets an answer that says so, and keeps no place.
func TestAWriterThatCannotFlush(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	held := http.TimeoutHandler(s.page, time.Minute, "")
	for range 40 {
		if got := s.ask(held); got.status != http.StatusNotImplemented || !strings.Contains(got.Error, "http.TimeoutHandler") {
			t.Fatalf("%+v", got)
		}
	}
}

// Another site cannot take the places of the operators.
func TestAnotherSiteGetsNoEvents(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	_ = s.page.Close() // so that a request that is let in ends
	for from, want := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 503, "none": 503, "": 503} {
		if got := s.ask(s.page, "Sec-Fetch-Site", from); got.status != want || got.Error == "" {
			t.Errorf("%q: %+v, want %d", from, got, want)
		}
	}
}

// ask asks for events that a handler refuses.
func (s *site) ask(h http.Handler, headers ...string) answered {
	s.t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, "/?events", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	h.ServeHTTP(w, r)
	a := answered{status: w.Code}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		s.t.Fatal(err)
	}
	return a
}
