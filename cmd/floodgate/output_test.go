package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What keeps the report from being written is said before the log is replayed, with
// the flag, the path and what to do.
func TestAReportThatCannotBeWritten(t *testing.T) {
	good, dir := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]"), t.TempDir()
	plain := file(t, "plain", "")
	for output, want := range map[string]string{
		filepath.Join(dir, "no", "page"): "--output: " + filepath.Join(dir, "no", "page") + " cannot be written: no such file or directory (make the folder first: mkdir -p " + filepath.Join(dir, "no") + ")\n",
		dir:                              "--output: " + dir + " is a folder: name a file in it\n",
		filepath.Join(plain, "page"):     "--output: " + filepath.Join(plain, "page") + " cannot be written: not a directory (choose another place)\n",
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
