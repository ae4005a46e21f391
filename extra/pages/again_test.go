package pages

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
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
	page.Manage(core.Must(core.New(core.Config{
		Name: "api", Observer: page,
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerMinute(quota)}}},
	})))
	return page
}

// gateway is a reverse proxy of a process that may be away.
type gateway struct {
	proxy *httputil.ReverseProxy
	until atomic.Int64 // when the process is back, in milliseconds
	asked atomic.Int64 // for events, while it was away
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if time.Now().UnixMilli() >= g.until.Load() {
		g.proxy.ServeHTTP(w, r)
		return
	}
	if r.URL.RawQuery == "events" {
		g.asked.Add(1)
	}
	http.Error(w, "<h1>Bad gateway</h1>", http.StatusBadGateway)
}

// The pauses between two questions grow, to 15 seconds at most.
func TestThePausesGrow(t *testing.T) {
	s := newDoor(t)
	one := service(t, "one", 20)
	s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "events" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		one.ServeHTTP(w, r)
	}))
	ctx := browser(t)
	// Every pause but that of a connection that is lost without a word (20 s) is over at once.
	const quick = `window.pauses = []; { const wait = setTimeout; window.setTimeout = (f, ms) => ms === 20000 ? wait(f, ms) : (pauses.push(ms), wait(f, 1)); }`
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: quick}); err != nil {
		t.Fatal(err)
	}
	do(t, ctx, chromedp.Navigate(s.URL))
	until(t, ctx, `pauses.slice(0, 7).join() === "1000,2000,4000,8000,15000,15000,15000"`)
}

// Behind a proxy, a process is away for three seconds. The page says so meanwhile, and
// comes back by itself.
func TestAProcessBehindAProxyIsAwayForAMoment(t *testing.T) {
	front, process := newDoor(t), newDoor(t)
	process.serve(service(t, "one", 20))
	target, err := url.Parse(process.URL)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{proxy: httputil.NewSingleHostReverseProxy(target)}
	g.proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	front.serve(g)
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(front.URL))
	until(t, ctx, link+` === "live"`)
	_ = found(t, ctx, chromedp.Evaluate[int](`window.before = 1`))
	g.until.Store(time.Now().Add(3 * time.Second).UnixMilli())
	process.CloseClientConnections()
	until(t, ctx, link+` === "not live: the server answers with status 502. What you see is what it last said"`)
	shoot(t, ctx, "live-away")
	until(t, ctx, link+` === "live" && window.before === 1`)
	if n := g.asked.Load(); n < 1 || n > 4 {
		t.Errorf("the page has asked %d times in three seconds", n)
	}
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
	until(t, ctx, link+` === "live" && document.getElementById("instance").textContent === "two"`)
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

// A key that no wait lets in is not shown as one that is let in now.
func TestAKeyThatIsNeverAdmittedAgain(t *testing.T) {
	s := newDoor(t)
	s.serve(service(t, "one", 0))
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(s.URL))
	until(t, ctx, link+` === "live"`)
	lookAt(t, ctx, "bob")
	until(t, ctx, `document.getElementById("card-limits").textContent.endsWith("00never")`)
}

// A browser that was sent to the page with a username and a password in its address.
func TestAPageWhoseAddressHasAPassword(t *testing.T) {
	s := newDoor(t)
	page := service(t, "one", 20)
	s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, password, ok := r.BasicAuth(); !ok || name != "olga" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="operators"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		page.ServeHTTP(w, r)
	}))
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(strings.Replace(s.URL, "http://", "http://olga:secret@", 1)+"/?a=b"))
	until(t, ctx, link+` === "live"`)
	lookAt(t, ctx, "bob")
	until(t, ctx, `document.querySelectorAll("#card-limits tr").length === 1`)
	press(t, ctx, "#card-ban")
	press(t, ctx, "#card-ban") // confirms it
	until(t, ctx, `document.getElementById("card-said").textContent === "Banned for 1 hour."`)
}
