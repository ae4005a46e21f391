package pages

import (
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"
)

// The form of examples/login says in words why an attempt is denied. Its picture is the one of docs/guides/login.md.
func TestTheLoginInABrowser(t *testing.T) {
	url := example(t, "login/nethttp", "/")
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(url))
	until(t, ctx, `document.forms[0].requestSubmit() || document.getElementById("answer").className === "denied"`)
	until(t, ctx, `/^429 [^]*retry-after: \d+\n\nToo many attempts to log in\. Try again later\.$/.test(document.getElementById("answer").textContent)`)
	fits(t, ctx, "login")
}

// A mistake in a policy file has its line and a caret, in colours. The picture is the one of docs/operate/command.md.
func TestAMistakeOnATerminal(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "limits.yaml"), []byte("policies:\n  - {name: api, key: ip, limits: 3/m}\n  - {name: search, key: ip, limits: 2/mni}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "floodgate")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/floodgate")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	check := exec.CommandContext(t.Context(), program, "check", "limits.yaml")
	check.Dir, check.Env = dir, append(os.Environ(), "CLICOLOR_FORCE=1")
	text, err := check.CombinedOutput()
	if check.ProcessState.ExitCode() != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	spans := regexp.MustCompile("\x1b\\[(\\d+)m").ReplaceAllString(html.EscapeString(string(text)), `</span><span class="c$1">`)
	page := `<style>:root { color-scheme: light dark } body { margin: 1rem; font: 14px/1.5 monospace; background: light-dark(#fff, #14181e) } pre { white-space: pre-wrap }
.c31 { color: light-dark(#b3261e, #f07a8a) } .c2 { color: light-dark(#5b6675, #9aa5b4) }</style><pre>$ floodgate check limits.yaml
<span>` + spans + `</span></pre>`
	if err := os.WriteFile(filepath.Join(dir, "page.html"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate("file://"+filepath.Join(dir, "page.html")))
	until(t, ctx, `document.querySelector(".c31").textContent === "✗ " && /limits: 2\/mni\}\n *\^$/.test(document.querySelector(".c2").textContent)`)
	fits(t, ctx, "terminal")
}
