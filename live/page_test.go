package live_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
	"github.com/floodgate-go/floodgate/login"
)

func TestThePageIsSmallAndLocksItselfUp(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	w := call(s.page, http.MethodGet, "", "")
	body, policy := w.Body.String(), w.Header().Get("Content-Security-Policy")
	if len(body) > 60<<10 || len(body) < 1000 {
		t.Errorf("%d bytes", len(body))
	}
	hash := func(element string) string {
		_, text, _ := strings.Cut(body, "<"+element+">")
		text, _, _ = strings.Cut(text, "</"+element+">")
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	if want := "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src " + hash("style") + "; script-src " + hash("script"); policy != want {
		t.Errorf("the policy is %s, want %s", policy, want)
	}
	if strings.Contains(body, "innerHTML") || strings.Contains(body, "https://") {
		t.Error("the page takes more than it needs")
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
		{http.MethodHead, "?events", 200, "text/html; charset=utf-8"}, // not a stream, which does not end
		{http.MethodPost, "", 400, "application/json"},
		{http.MethodPut, "", 405, "application/json"},
	} {
		w := call(s.page, row.method, row.query, "")
		h := w.Header()
		if w.Code != row.status || h.Get("Content-Type") != row.kind || (w.Body.Len() == 0) != (row.method == http.MethodHead) {
			t.Errorf("%s %s: %d %s, %d bytes, want %d %s", row.method, row.query, w.Code, h.Get("Content-Type"), w.Body.Len(), row.status, row.kind)
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || (h.Get("X-Accel-Buffering") == "no") != (row.kind == "text/event-stream") {
			t.Errorf("%s %s: %v", row.method, row.query, h)
		}
		if allow := h.Get("Allow"); row.status == http.StatusMethodNotAllowed && (allow != "GET, HEAD, POST" || w.Body.String() != "{\"error\":\"use GET or POST\"}\n") {
			t.Errorf("%s %s: Allow: %q: %s", row.method, row.query, allow, w.Body)
		}
	}
}

func TestWhatThePageShows(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	s.page.Observe("an", nil)
	s.take(5, "alice")
	got := s.see()
	if len(got.Limiters) != 2 || got.Limiters[0].Name != "an" || got.Limiters[0].Managed || got.Instance != "one" || !got.ReadOnly {
		t.Fatalf("%+v", got)
	}
	l := got.Limiters[1]
	if l.Name != "api" || !l.Managed || l.Shared || len(l.Denied) != 1 || l.Denied[0].Count != 2 || l.Denied[0].Rule != "user" || strings.Contains(l.Denied[0].Label, "alice") {
		t.Errorf("%+v", l)
	}
	if len(l.Near) != 1 || l.Near[0].Used != 3 || l.Near[0].Capacity != 3 {
		t.Errorf("nearest: %+v", l.Near)
	}
	s = newSite(t, live.Config{}, core.Config{})
	for i := range 2400 { // the page keeps 2048 that are denied, and 1024 that are near: each place is taken twice, or three times
		s.take(4, fmt.Sprint(i))
	}
	if l := s.see().Limiters[0]; len(l.Denied) != 20 || len(l.Near) != 20 || l.Denied[0].Count != 1 || l.Denied[0].Over != 1 || l.Near[0].Over != 4 {
		t.Errorf("%+v", l)
	}
}

// A limiter whose Observer is not the page has no counts. The page's script needs a list all the same. A
// page without a name has that of the host, and one without a log the default one.
func TestAManagedLimiterThatThePageDoesNotObserve(t *testing.T) {
	before, log := slog.Default(), new(bytes.Buffer)
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	p := core.Must(live.New(live.Config{}))
	defer func() { _ = p.Close() }()
	if _ = call(p, http.MethodPost, "", "", "Sec-Fetch-Site", "cross-site"); !strings.Contains(log.String(), "another site") {
		t.Errorf("the log is %q", log)
	}
	host, _ := os.Hostname()
	p.Manage(core.Must(core.New(core.Config{Name: "api", Rules: []core.Rule{userRule}})))
	if got := call(p, http.MethodGet, "?events", "").Body.String(); !strings.Contains(got, `"name":"api","managed":true`) || !strings.Contains(got, `"rules":[]`) || !strings.Contains(got, `"instance":"`+host+`"`) {
		t.Error(got)
	}
	// Of two limiters of one name, the page manages the last one.
	p.Manage(core.Must(core.New(core.Config{Name: "api", Rules: []core.Rule{{Name: "new", Limits: []core.Limit{core.PerHour(0)}}}})))
	if got := answer(t, call(p, http.MethodPost, "", `{"do":"look","limiter":"api","rule":"new","key":"a"}`)); got.status != http.StatusOK || got.Limits[0].RetryMS != -1 {
		t.Errorf("%+v", got)
	}
}

// Two processes with the same secret show the same hash, with different secrets another. A
// text of ShowKey stands for it, unless it is empty.
func TestTheTextOfAKey(t *testing.T) {
	label := func(c live.Config) string {
		s := newSite(t, c, core.Config{})
		s.take(4, "alice")
		return s.see().Limiters[0].Denied[0].Label
	}
	show := func(text string) func(_, _, _ string) string {
		return func(limiter, rule, key string) string {
			if limiter != "api" || rule != "user" || key != "alice" {
				t.Errorf("%s, %s, %s", limiter, rule, key)
			}
			return text
		}
	}
	secret := []byte("0123456789abcdef")
	a, b, c, d := label(live.Config{Secret: secret}), label(live.Config{Secret: secret, ShowKey: show("")}), label(live.Config{}), label(live.Config{ShowKey: show("Alice")})
	if e := label(live.Config{}); a != b || a == c || c == e || len(a) != 11 || d != "Alice" {
		t.Error(a, b, c, d, e)
	}
	for _, short := range [][]byte{{}, secret[:15]} {
		if _, err := live.New(live.Config{Secret: short}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "16") {
			t.Error(err)
		}
	}
}

func TestWhatIsManagedIsNotNil(t *testing.T) {
	p := core.Must(live.New(live.Config{}))
	defer func() { _ = p.Close() }()
	var guard *login.Guard
	for want, manage := range map[string]func(){
		"live: Manage: a limiter is nil":       func() { p.Manage(core.Must(core.New(core.Config{Rules: []core.Rule{userRule}})), nil) },
		"live: ManageLogin: the login is nil:": func() { p.ManageLogin("site", guard) },
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, want) {
					t.Errorf("%v, want %s", got, want)
				}
			}()
			manage()
		}()
	}
}

// A browser that reads nothing is let go, and so is one whose connection is broken. A slow one
// misses seconds.
func TestABrowserThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, live.Config{}, core.Config{})
		dead, broken, slow, well := follow(t, s.page), follow(t, s.page), follow(t, s.page), follow(t, s.page)
		dead.set(time.Minute, false)
		broken.set(0, true)
		slow.set(9500*time.Millisecond, false)
		time.Sleep(90500 * time.Millisecond)
		if !dead.gone() || !broken.gone() || slow.gone() || well.gone() {
			t.Errorf("let go: %t, %t, %t, %t", dead.gone(), broken.gone(), slow.gone(), well.gone())
		}
		if a, b := len(slow.all()), len(well.all()); a != 83 || b != 91 {
			t.Errorf("%d and %d events", a, b)
		}
	})
}

// 32 browsers can follow the page. One that leaves makes room for another.
func TestTheNumberOfViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, live.Config{}, core.Config{})
		var last *viewer
		for range 32 {
			last = follow(t, s.page)
		}
		if got := answer(t, call(s.page, http.MethodGet, "?events", "")); got.status != http.StatusServiceUnavailable || !strings.Contains(got.Error, "too many pages") {
			t.Errorf("%+v", got)
		}
		last.leave()
		synctest.Wait()
		if v := follow(t, s.page); v.gone() {
			t.Error("there is no room")
		}
	})
}

// A page that is closed ends the events and says so, and can be closed twice.
func TestAClosedPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, live.Config{}, core.Config{})
		v := follow(t, s.page)
		_, _ = s.page.Close(), s.page.Close()
		if !v.gone() || len(v.all()) != 1 {
			t.Errorf("the viewer has gone: %t", v.gone())
		}
		if got := answer(t, call(s.page, http.MethodGet, "?events", "")); got.status != http.StatusServiceUnavailable || !strings.Contains(got.Error, "closed") {
			t.Errorf("%+v", got)
		}
	})
}

// A writer that cannot send an event at once gets an answer that says so, and keeps no place.
func TestAWriterThatCannotFlush(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	for range 40 {
		w := httptest.NewRecorder()
		http.TimeoutHandler(s.page, time.Minute, "").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?events", nil))
		if got := answer(t, w); got.status != http.StatusNotImplemented || !strings.Contains(got.Error, "http.TimeoutHandler") {
			t.Fatalf("%+v", got)
		}
	}
}

// Another site cannot take the places of the operators.
func TestAnotherSiteGetsNoEvents(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	for from, want := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200, "": 200} {
		got := call(s.page, http.MethodGet, "?events", "", "Sec-Fetch-Site", from)
		if got.Code != want || strings.Contains(got.Body.String(), `{"error":"the request comes from another site"}`) != (want == 403) {
			t.Errorf("%q: %d, want %d: %s", from, got.Code, want, got.Body)
		}
	}
}
