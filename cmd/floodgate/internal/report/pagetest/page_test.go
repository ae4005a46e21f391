package pagetest

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
	"github.com/floodgate-go/floodgate/internal/leftout"
)

// browser starts a headless Chromium.
func browser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		leftout.Skip(t, "no browser is installed: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1000, 1600), chromedp.UserDataDir(t.TempDir()))
	var failed error
	for range 3 { // its first start on a machine may fail
		allocated, cancel := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, end := chromedp.NewContext(allocated)
		if failed = chromedp.Do(ctx); failed == nil {
			ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
			t.Cleanup(func() { stop(); end(); cancel() })
			return ctx
		}
		end()
		cancel()
	}
	t.Fatal(failed)
	return nil
}

// page replays a log with an attack in it, whose client also writes markup.
func page(t *testing.T) string {
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
	r, err := replay.New(replay.Config{
		Files: []replay.File{{Name: "limits.yaml", Text: []byte(`
policies:
  - {name: client, key: ip, limits: 30/m}
  - {name: route, key: path, limits: 100/m}
  - {name: planned, key: ip, limits: 10/m, dry-run: true}
`)}}, HonestPerMinute: 60, Top: 10, MaxKeys: 10_000, Sweep: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // its counters are in memory
	if err := r.Run(t.Context(), "access.log", strings.NewReader(log.String())); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.HTML(&b, r.Report()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// look returns what an action finds in the page.
func look[T any](t *testing.T, ctx context.Context, a chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestThePageInABrowser(t *testing.T) {
	ctx := browser(t)
	var mu sync.Mutex
	var asked, complaints []string
	url := page(t)
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			asked = append(asked, e.Request.URL)
		case *runtime.EventExceptionThrown:
			complaints = append(complaints, e.ExceptionDetails.Text)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	title, text := look(t, ctx, chromedp.Title()), look(t, ctx, chromedp.Text("body"))
	plots := look(t, ctx, chromedp.Evaluate[int](`document.querySelectorAll("svg").length`))
	drawn := look(t, ctx, chromedp.Evaluate[bool](`[...document.querySelectorAll("svg")].every(s => s.getBoundingClientRect().height > 100 && s.querySelectorAll("rect, circle").length > 5)`))
	overflow := look(t, ctx, chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`))
	shot := look(t, ctx, chromedp.FullScreenshot(100))
	if title != "Replay of access.log" {
		t.Errorf("the title is %q: has something run?", title)
	}
	for _, want := range []string{"10 197 requests", "203.0.113.9", "<script>document.title='owned'</script>", "planned (dry run)", "honest clients denied"} {
		if !strings.Contains(strings.ReplaceAll(text, "\u202f", " "), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if plots != 5 || !drawn { // over time, by key, and a sweep for each policy
		t.Errorf("%d plots, all drawn: %t", plots, drawn)
	}
	if overflow > 0 {
		t.Errorf("the page is %d pixels too wide", overflow)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || asked[0] != url || len(complaints) > 0 {
		t.Errorf("it asked for %q and complained of %q", asked, complaints)
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	colours := map[[3]uint32]int{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			r, g, b, _ := picture.At(x, y).RGBA()
			colours[[3]uint32{r >> 8, g >> 8, b >> 8}]++
		}
	}
	for name, c := range map[string][3]uint32{"allowed": {0x4a, 0x90, 0xc2}, "denied": {0xd1, 0x49, 0x5b}} {
		if colours[c] < 1000 {
			t.Errorf("only %d pixels of the picture have the colour of what was %s", colours[c], name)
		}
	}
	if path := os.Getenv("FLOODGATE_SCREENSHOT"); path != "" { // to be looked at
		if err := os.WriteFile(path, shot, 0o600); err != nil {
			t.Error(err)
		}
	}
}
