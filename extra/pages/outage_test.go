package pages

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/live"
)

func TestMain(m *testing.M) { processtest.Main(m, serve) }

// serve is an instance that is a process of its own: it listens at the first argument, and
// its Redis is at the second one.
func serve() {
	_, stopped := processtest.Signals()
	i := newInstance("other", os.Args[2], live.Config{Authorize: anybody})
	server := &http.Server{Addr: os.Args[1], Handler: i.handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.ListenAndServe() }()
	for range 100 { // most are denied: the page shows her for some minutes
		i.allows("carol")
	}
	_, _ = fmt.Fprintln(os.Stdout, "ready")
	<-stopped
}

// answers reports whether an instance that is another process serves its page.
func answers(url string) bool {
	resp, err := http.Get(url) //nolint:gosec // of the test
	if err != nil {
		return false
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}

const link = `document.getElementById("link").textContent`

// Two instances share a Redis. The page of the one that dies says that what it shows is old. The
// page of the other one goes on with its own traffic, and says that this is all that it shows.
func TestAnInstanceDies(t *testing.T) {
	server := redistest.Start(t)
	one := start(t, "one", server.Addr, live.Config{Authorize: anybody})
	one.traffic(t)
	addr := processtest.FreeAddr(t, 0)
	other := processtest.Start(t, addr, server.Addr)
	other.Wait("ready", 1)
	url := "http://" + addr + path
	eventually(t, "the other instance serves", func() bool { return answers(url) })

	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(url))
	until(t, ctx, link+` === "live" && document.getElementById("instance").textContent === "other" && [...document.querySelectorAll("td.key")].some(e => e.textContent === "carol")`)
	other.Signal(syscall.SIGSTOP)
	until(t, ctx, link+`.startsWith("not live: nothing heard from this process for ")`)
	other.Signal(syscall.SIGCONT)
	until(t, ctx, link+` === "live"`)
	other.Kill()
	until(t, ctx, link+`.startsWith("not live: this process does not answer. What you see is what it last said")`)
	shoot(t, ctx, "live-dead")

	do(t, ctx, chromedp.Navigate(one.url()))
	until(t, ctx, link+` === "live" && document.querySelectorAll("td.key").length > 3`)
	if text := found(t, ctx, chromedp.Text("#scope")); text != "What this process decides, second by second. Other processes show their own. What is left of a limit comes from the store." {
		t.Errorf("the page says of other processes: %q", text)
	}
	if found(t, ctx, chromedp.Evaluate[bool](`[...document.querySelectorAll("td.key")].some(e => e.textContent === "carol")`)) {
		t.Error("the page shows a key that only the dead process has denied")
	}
}

// lookAt types a key of the rule user into the page's form.
func lookAt(t *testing.T, ctx context.Context, key string) {
	t.Helper()
	const form = `section[aria-label="api"] form` // the other limiter has a hidden one
	do(t, ctx, chromedp.SetValue(form+` select`, "user"), chromedp.SetValue(form+` input`, key))
	press(t, ctx, form+` button`)
	until(t, ctx, `document.getElementById("card").open`)
}

// The Redis stops. The page says so, shows no number that it does not have, and an action
// says that it was not done.
func TestTheStoreDies(t *testing.T) {
	server := redistest.Start(t)
	one := start(t, "one", server.Addr, live.Config{Authorize: anybody})
	one.traffic(t)
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(one.url()))
	until(t, ctx, link+` === "live" && document.querySelectorAll("td.key").length > 3`)
	server.Stop()
	until(t, ctx, `[...document.querySelectorAll(".titled .bad")].some(e => / failed/.test(e.textContent) && /requests could not be decided on/.test(e.textContent))`)
	lookAt(t, ctx, reversed+"2") // nobody's: no denial of it is cached
	until(t, ctx, fmt.Sprintf(`document.getElementById("card-title").textContent === %q && document.getElementById("card-said").textContent === "the store failed: the log has the error"`, reversedShown+"2"))
	if rows := found(t, ctx, chromedp.Evaluate[int](`document.querySelectorAll("#card-limits tr").length`)); rows != 0 {
		t.Errorf("the page shows %d limits that it cannot know", rows)
	}
	shoot(t, ctx, "live-store")
	server.Restart()
	until(t, ctx, `[...document.querySelectorAll(".titled .soft")].some(e => / store operations/.test(e.textContent))`)
	// The client may still have a connection to the server that is gone.
	eventually(t, "the limits are shown", func() bool {
		press(t, ctx, "#card-look")
		return found(t, ctx, chromedp.Evaluate[bool](`document.querySelectorAll("#card-limits tr").length === 2`))
	})
}
