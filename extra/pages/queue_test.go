package pages

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/examples/queue/site"
)

// The page of examples/queue draws each request of a crowd, in numbers too. It works with the
// keyboard, in a narrow window, and in both schemes of colours.
func TestThePageOfTheQueue(t *testing.T) {
	s := core.Must(site.New(&http.Transport{Proxy: func(r *http.Request) (*url.URL, error) {
		if r.Header.Get("X-User") == "bob" {
			return nil, errors.New("gone")
		}
		return nil, nil //nolint:nilnil // no proxy
	}}))
	defer s.Close() //nolint:errcheck // the test is over
	server := httptest.NewServer(s)
	defer server.Close()
	ctx := browser(t)
	_, problems := complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(server.URL+"/"))
	do(t, ctx, chromedp.KeyEvent("\t"), chromedp.KeyEvent("\r"))
	until(t, ctx, `document.getElementById("summary").textContent.endsWith("were denied.")`)
	if text := found(t, ctx, chromedp.Evaluate[string](`document.getElementById("summary").textContent`)); !strings.HasPrefix(text, "ann: ") {
		t.Errorf("the summary: %q", text)
	}
	const rows = `[...document.querySelectorAll("#of-ann tbody tr")]`
	if !found(t, ctx, chromedp.Evaluate[bool](rows+`.map(r => r.cells[0].textContent).join() === Array.from({length: 30}, (_, i) => i + 1).join()`)) {
		t.Error("the rows are not the 30 requests, in order")
	}
	if !found(t, ctx, chromedp.Evaluate[bool](rows+`.every(r => /\u00a0s$|429\)$/.test(r.cells[2].textContent) && r.querySelectorAll("rect").length > 0)`)) {
		t.Error("a row has no numbers or no bar")
	}
	if !found(t, ctx, chromedp.Evaluate[bool](`document.activeElement.dataset.user === "ann"`)) {
		t.Error("the button has lost the focus")
	}
	fits(t, ctx, "queue")
	do(t, ctx, chromedp.Click(`[data-user="bob"]`))
	until(t, ctx, `document.getElementById("summary").textContent === "bob: 0 ran at once, 0 waited, 0 were denied, 30 failed."`)
	if !found(t, ctx, chromedp.Evaluate[bool](`[...document.querySelectorAll("#of-bob tbody tr")].every(r => r.cells[2].textContent === "no answer: gone")`)) {
		t.Error("the page does not say that there was no answer")
	}
	if p := problems(); len(p) > 0 {
		t.Errorf("the console says %q", p)
	}
}
