package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A release is a folder of its own, and a link names the current one. Neither turning
// the link nor renaming a folder above the file is an event of the file's own folder.
func TestAReleaseIsNoticed(t *testing.T) {
	top := t.TempDir()
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	for release, quota := range map[string]string{"1": "5", "2": "6", "3": "7"} {
		dir := filepath.Join(top, "app", "releases", release, "conf")
		must(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "p.yaml"), []byte("policies: [{name: a, limits: "+quota+"/h}]"), 0o600))
	}
	app := filepath.Join(top, "app")
	turn := func(release string) {
		must(os.Symlink(filepath.Join("releases", release), filepath.Join(app, "next")), os.Rename(filepath.Join(app, "next"), filepath.Join(app, "current")))
	}
	turn("1")
	w := watch(t, filepath.Join(app, "current", "conf", "p.yaml"), "")
	noticed := func(what string, want int64) {
		t.Helper()
		if err := w.reloaded(); err != nil || w.left("a") != want {
			t.Errorf("%s: %v, %d left, want %d", what, err, w.left("a"), want)
		}
	}
	turn("2")
	noticed("the link is turned", 6)

	// A folder above the file is exchanged for another one.
	other := filepath.Join(top, "other")
	dir := filepath.Join(other, "current", "conf")
	must(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "p.yaml"), []byte("policies: [{name: a, limits: 9/h}]"), 0o600))
	must(os.Rename(app, filepath.Join(top, "old")), os.Rename(other, app))
	if err := w.reloaded(); err == nil { // unless the file was read between the two renames
		if w.left("a") != 9 {
			t.Errorf("a folder is exchanged: %d left, want 9", w.left("a"))
		}
	} else {
		noticed("a folder is exchanged", 9)
	}
	must(os.WriteFile(filepath.Join(app, "current", "conf", "p.yaml"), []byte("policies: [{name: a, limits: 4/h}]"), 0o600))
	noticed("the file in the new folder is written", 4)
	if w.set.Warnings() != nil {
		t.Errorf("warnings: %v", w.set.Warnings())
	}
}
