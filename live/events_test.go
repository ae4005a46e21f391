package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

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
