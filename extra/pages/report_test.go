package pages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// report replays a log with an attack in it, whose client also writes markup.
func report(t *testing.T) string {
	t.Helper()
	var log strings.Builder
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	add := func(second int, address, request string) {
		fmt.Fprintf(&log, "%s - - [%s] \"%s HTTP/1.1\" 200 1 \"-\" \"-\"\n", address, begin.Add(time.Duration(second)*time.Second).Format("02/Jan/2006:15:04:05 -0700"), request)
	}
	for s := range 7200 {
		add(s, fmt.Sprintf("10.0.%d.%d", s%7, s%90), fmt.Sprintf("GET /items/%d", s))
		if s > 3000 && s < 4000 {
			for range 3 {
				add(s, "203.0.113.9", "POST /login/<script>document.title='owned'</script>")
			}
		}
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	limits, access, path := write("limits.yaml", `
policies:
  - {name: client, key: ip, limits: 30/m}
  - {name: route, key: path, limits: 100/m}
  - {name: planned, key: ip, limits: 10/m, dry-run: true}
`), write("access.log", log.String()), filepath.Join(dir, "page.html")
	replay := exec.CommandContext(t.Context(), "go", "run", "./cmd/floodgate", "replay", "--format", "html", "--sweep", limits, access)
	replay.Dir = "../.."
	page, err := replay.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, page, 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

func TestTheReportInABrowser(t *testing.T) {
	ctx := browser(t)
	asked, said := complaints(t, ctx)
	url := report(t)
	do(t, ctx, chromedp.EmulateViewport(1000, 1600), chromedp.Navigate(url))
	title, text := found(t, ctx, chromedp.Title()), found(t, ctx, chromedp.Text("body"))
	plots := found(t, ctx, chromedp.Evaluate[int](`document.querySelectorAll("svg").length`))
	drawn := found(t, ctx, chromedp.Evaluate[bool](`[...document.querySelectorAll("svg")].every(s => s.getBoundingClientRect().height > 100 && s.querySelectorAll("rect").length > 5)`))
	fills := found(t, ctx, chromedp.Evaluate[string](`[".a", ".r"].map(kind => [...document.querySelectorAll(kind)].find(e => e.checkVisibility() && e.getBoundingClientRect().height > 20)).map(e => getComputedStyle(e).fill).join("; ")`))
	if !strings.HasPrefix(title, "Replay of ") || !strings.HasSuffix(title, "/access.log") {
		t.Errorf("the title is %q: has something run?", title)
	}
	for _, want := range []string{"10 197 requests", "203.0.113.9", "<script>document.title='owned'</script>", "planned (dry run)", "honest clients denied"} {
		if !strings.Contains(strings.ReplaceAll(text, "\u202f", " "), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if plots != 4 || !drawn { // over time, and a sweep for each policy
		t.Errorf("%d plots, all drawn: %t", plots, drawn)
	}
	if fills != "rgb(74, 144, 194); rgb(209, 73, 91)" {
		t.Errorf("the bars of what was allowed and denied are %s", fills)
	}
	if urls, texts := asked(), said(); len(urls) != 1 || urls[0] != url || len(texts) > 0 {
		t.Errorf("it asked for %q and complained of %q", urls, texts)
	}
	fits(t, ctx, "report")
}
