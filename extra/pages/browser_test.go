package pages

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

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
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.UserDataDir(t.TempDir()))
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

// found returns what an action finds in the page.
func found[T any](t *testing.T, ctx context.Context, a chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// until waits until an expression is true in the page.
func until(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	for begin := time.Now(); ; {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression)) // fails while the browser goes from page to page
		if ok {
			return
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("never so: %s (%v)", expression, err)
		}
	}
}

// press presses a button by the page's own click: rows and cards move as events come, and a mouse
// may miss them.
func press(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	until(t, ctx, fmt.Sprintf("(button => button !== null && !button.disabled && (button.click(), true))(document.querySelector(%q))", selector))
}

// write gives a field a value, as a user does.
func write(t *testing.T, ctx context.Context, selector, text string) {
	t.Helper()
	_ = found(t, ctx, chromedp.Evaluate[bool](fmt.Sprintf(`(e => { e.value = %q; return ["input", "change"].every(kind => e.dispatchEvent(new Event(kind))); })(document.querySelector(%q))`, text, selector)))
}

// paint sets the width of the window and the user's preference of colours.
func paint(t *testing.T, ctx context.Context, width int64, scheme string) {
	t.Helper()
	do(t, ctx, chromedp.EmulateViewport(width, 900))
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		t.Fatal(err)
	}
}

// unseen has the elements that have a text or a line and cannot be seen, and those that are hidden and can be seen.
const unseen = `(() => {
  const back = e => getComputedStyle(e).backgroundColor === "rgba(0, 0, 0, 0)" && e.parentElement ? back(e.parentElement) : getComputedStyle(e).backgroundColor
  return [...document.querySelectorAll("body *, [hidden]")].filter(e => !e.closest("dialog:not([open]), script, style, noscript, title, option, thead .spark") &&
    (e.textContent.trim() || e.matches("svg, path")) && (style => e.closest("[hidden]") ? e.checkVisibility() :
      !e.checkVisibility({opacityProperty: true, visibilityProperty: true}) || style.color === back(e) ||
      e.matches("svg") && e.getBoundingClientRect().height < 5 || e.matches("path") && style.stroke === "none")(getComputedStyle(e))).map(e => e.outerHTML.slice(0, 200)).join("\n")
})()`

// fits checks that the page fits narrow and wide windows, shows all texts and lines that are not hidden, and has
// two schemes of colours. It takes pictures.
func fits(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	backs := map[string]bool{}
	for _, width := range []int64{360, 1400} {
		for _, scheme := range []string{"light", "dark"} {
			paint(t, ctx, width, scheme)
			until(t, ctx, fmt.Sprintf(`innerWidth === %d`, width))
			if wide := found(t, ctx, chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`)); wide > 0 {
				t.Errorf("at %d pixels the page is %d too wide", width, wide)
			}
			if text := found(t, ctx, chromedp.Evaluate[string](unseen)); text != "" {
				t.Errorf("at %d pixels nobody sees %s", width, text)
			}
			backs[found(t, ctx, chromedp.Evaluate[string](`getComputedStyle(document.body).backgroundColor`))] = true
			shoot(t, ctx, fmt.Sprintf("%s-%d-%s", name, width, scheme))
		}
	}
	if len(backs) != 2 {
		t.Errorf("the backgrounds are %v", backs)
	}
}

// example runs a program of examples and returns the address of one of its pages.
func example(t *testing.T, name, page string) (url string) {
	t.Helper()
	listener := httptest.NewServer(nil)
	address := listener.Listener.Addr().String()
	listener.Close()
	program := filepath.Join(t.TempDir(), "example")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/"+name)
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	running := exec.CommandContext(t.Context(), program, "-addr", address)
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = running.Process.Kill(); _ = running.Wait() })
	url = "http://" + address + page
	eventually(t, "the example serves", func() bool { return answers(url) })
	return url
}
