package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
)

// stepping is a clock that goes on by step with each reading.
func stepping(step time.Duration) func() time.Time {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	return func() time.Time {
		at = at.Add(step)
		return at
	}
}

// A replay reports its progress after each batch of 512 lines.
func TestProgressOfAReplay(t *testing.T) {
	good, log := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]"), file(t, "access.log", accessLog(600))
	for _, c := range []struct {
		step  time.Duration
		quiet bool
		logs  []string
		want  string
	}{
		{reportEvery, false, []string{log}, "512 lines, 256 lines a second\n600 lines, 150 lines a second\n"},
		// The first and the third reading of the clock are too early.
		{reportEvery / 2, false, []string{log, log}, "600 lines, 300 lines a second\n1200 lines, 300 lines a second\n"},
		{reportEvery, true, []string{log}, ""},
	} {
		var out, errs bytes.Buffer
		o := &replaying{format: "text", honest: 60, top: 1, quiet: c.quiet, now: stepping(c.step), out: &out, diagnostics: &errs}
		if err := o.replay(t.Context(), []string{good}, c.logs); err != nil {
			t.Fatal(err)
		}
		if errs.String() != c.want {
			t.Errorf("%q reports\n%swant\n%s", c.logs, &errs, c.want)
		}
	}
}

// The least value of each number is a value.
func TestTheLeastNumbers(t *testing.T) {
	good, log := file(t, "good.yaml", "policies: [{name: a, key: ip, limits: 1/h}]"), file(t, "access.log", accessLog(100))
	out, _ := expect(t, exitFine, "", "replay", good, log, "--top", "1", "--honest", "1")
	if n := strings.Count(out, "10.0.0."); n == 0 || n > 2 { // one key and one client
		t.Errorf("--top 1 lists %d addresses:\n%s", n, out)
	}
}

// A replay of no line is an error that names the formats.
func TestALogThatIsNoAccessLog(t *testing.T) {
	good, real, empty := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]"), file(t, "access.log", accessLog(1)), file(t, "empty.log", "\n\r\n")
	for name, c := range map[string]struct{ text, want string }{
		"prose.log": {"hello \x1b[2Jworld\nsecond\n", `none of its lines (2) is a line of an access log: line 1, "hello \x1b[2Jworld", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")\n"},
		"late.log":  {"\n\n" + strings.Repeat("é", 200) + "\n", `none of its lines (1) is a line of an access log: line 3, "` + strings.Repeat("é", 100) + `...", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")\n"},
		"json.log":  {`{"when":1}` + "\n", `none of its lines (1) is a line of an access log: line 1, "{\"when\":1}", has no time that can be read (want ` + accesslog.Formats + "; --fields names the fields of other JSON)\n"},
		"empty.log": {"\n\r\n", "no lines (want a log in " + accesslog.Formats + ")\n"},
		"none.log":  {"", "no lines (want a log in " + accesslog.Formats + ")\n"},
	} {
		path := file(t, name, c.text)
		if out, errs := expect(t, exitFailed, "", "replay", good, path); errs != "floodgate: "+path+": "+c.want || out != "" {
			t.Errorf("%s: says %q %q\nwant %s", name, errs, out, c.want)
		}
	}
	// A log that was rotated a moment ago is empty.
	if out, _ := expect(t, exitFine, "", "replay", good, real, empty); !strings.Contains(out, "1 line, 1 request ") {
		t.Errorf("with an empty log: %s", out)
	}
}

// What keeps the report from being written is said before the log is replayed, with
// the flag, the path and what to do.
func TestAReportThatCannotBeWritten(t *testing.T) {
	good, dir := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]"), t.TempDir()
	plain := file(t, "plain", "")
	for output, want := range map[string]string{
		filepath.Join(dir, "no", "page"): "--output: " + filepath.Join(dir, "no", "page") + " cannot be written: there is no folder " + filepath.Join(dir, "no") + "\n",
		dir:                              "--output: " + dir + " is a folder: name a file in it\n",
		filepath.Join(plain, "page"):     "--output: " + filepath.Join(plain, "page") + " cannot be written: there is no folder " + plain + "\n",
	} {
		// A log that is not there shows that no log has been opened.
		if out, errs := expect(t, exitFailed, "", "replay", good, "no.log", "-o", output); errs != "floodgate: "+want || out != "" {
			t.Errorf("%s: says %swant %s", output, errs, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// A report replaces a file as a whole, also behind a link, and not by halves.
func TestAReportReplacesAFile(t *testing.T) {
	dir := t.TempDir()
	page, link := filepath.Join(dir, "page"), filepath.Join(dir, "link")
	if err := os.WriteFile(page, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("page", link); err != nil {
		t.Fatal(err)
	}
	good, log := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]"), file(t, "access.log", accessLog(3))
	expect(t, exitFailed, "", "replay", good, log, filepath.Join(dir, "none.log"), "-o", link)
	if text, err := os.ReadFile(page); err != nil || string(text) != "old" {
		t.Errorf("a replay that failed has left %q, %v", text, err)
	}
	expect(t, exitFine, "", "replay", good, log, "-o", link)
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link has become a file: %v", err)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "3 requests") {
		t.Errorf("the page is %q, %v", text, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

func TestReplayUsesTheQuotasOfKeys(t *testing.T) {
	var log strings.Builder
	for range 5 {
		for _, user := range []string{"ann", "eve", "-"} {
			log.WriteString("203.0.113.1 - " + user + " [21/Nov/2026:10:00:01 +0000] \"GET /api HTTP/1.1\" 200 12 \"-\" \"curl\"\n")
		}
	}
	if out, _ := expect(t, 0, log.String(), "replay", "--quiet", file(t, "p.yaml", withCustomers), "-"); !strings.Contains(out, "8 allowed, 7 denied") {
		t.Errorf("says %s", out)
	}
}
