package pages

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

// door is a server whose handler is another one from time to time.
type door struct {
	*httptest.Server
	now atomic.Pointer[http.Handler]
}

func (s *door) serve(h http.Handler) { s.now.Store(&h) }

// newDoor starts a server. Start it before its pages, so that they end before it: it waits for
// their viewers.
func newDoor(t *testing.T) *door {
	t.Helper()
	s := new(door)
	s.serve(http.NotFoundHandler())
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.now.Load()).ServeHTTP(w, r) }))
	t.Cleanup(s.Close)
	return s
}

// service is a page and its limiter, whose counters are in the process.
func service(t *testing.T, name string, quota int64) *live.Page {
	t.Helper()
	page := core.Must(live.New(live.Config{Instance: name, Authorize: anybody, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}))
	t.Cleanup(func() { _ = page.Close() })
	page.Observe(name, nil)
	page.Manage(core.Must(core.New(core.Config{
		Name: "api", Observer: page,
		Rules: []core.Rule{{Name: "user-" + name, Limits: []core.Limit{core.PerMinute(quota)}}},
	})))
	return page
}

// A process closes the page, and another one takes its place.
func TestAPageThatIsClosed(t *testing.T) {
	s := newDoor(t)
	one := service(t, "one", 20)
	s.serve(one)
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(s.URL))
	until(t, ctx, link+` === "live"`)
	_ = one.Close()
	until(t, ctx, link+`.startsWith("not live: this process has closed the page. ")`)
	s.serve(service(t, "two", 20))
	until(t, ctx, link+` === "live" && document.getElementById("instance").textContent === "two" && [...document.querySelectorAll("section.limiter")].map(e => e.getAttribute("aria-label")).join() === "api,two" &&
		document.querySelector(".rules tbody").textContent.startsWith("user-two") && !document.querySelector(".rules tbody tr").hidden && document.querySelector("option").textContent === "user-two"`)
}

// The page says why it gets no events, and what to do.
func TestThePageSaysWhyItIsNotLive(t *testing.T) {
	s := newDoor(t)
	page := service(t, "one", 20)
	s.serve(page)
	var held sync.WaitGroup
	for range 32 {
		resp, err := http.Get(s.URL + "?events") //nolint:gosec // of the test
		if err != nil {
			t.Fatal(err)
		}
		held.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
		defer resp.Body.Close() //nolint:errcheck // only read from
	}
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(s.URL))
	until(t, ctx, link+`.startsWith("not live: too many pages of this process are open. ")`)
	login := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<form>") })
	mux := http.NewServeMux()
	mux.Handle("/login", login)
	mux.Handle("/", http.RedirectHandler("/login", http.StatusFound))
	s.serve(mux)
	until(t, ctx, link+`.startsWith("not live: another page answers: load this page again, you may have to log in. ")`)
	s.serve(http.TimeoutHandler(service(t, "two", 20), 10*time.Second, ""))
	until(t, ctx, link+`.startsWith("not live: the page needs a server that sends each event at once: mount it outside of http.TimeoutHandler")`)
	_ = page.Close()
	held.Wait()
}
