package policy

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/internal/leftout"
)

// A folder that takes the place of another one is watched in its place, and one that
// stays is not watched anew.
func TestAFolderInThePlaceOfAnotherIsWatched(t *testing.T) {
	f, err := newFolders()
	if err != nil {
		leftout.Skip(t, "the operating system reports no changes of files: "+err.Error())
	}
	defer f.close() //nolint:errcheck // the test is over
	top := t.TempDir()
	dir, path := filepath.Join(top, "conf"), filepath.Join(top, "conf", "p.yaml")
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	// heard says whether a change of a file is reported.
	heard := func(path string) bool {
		t.Helper()
		must(os.WriteFile(path, nil, 0o600))
		end := time.NewTimer(10 * time.Second)
		defer end.Stop()
		for {
			select {
			case e := <-f.watcher.Events:
				if e.Name == path {
					for len(f.watcher.Events) > 0 {
						<-f.watcher.Events
					}
					return true
				}
			case err := <-f.watcher.Errors:
				t.Fatal(err)
			case <-end.C:
				return false
			}
		}
	}
	must(os.Mkdir(dir, 0o700), f.follow(path))
	before := f.known[dir]
	if !heard(path) {
		t.Error("a change is not heard")
	}
	must(f.follow(path))
	if f.known[dir] != before {
		t.Error("the same folder is watched anew")
	}
	must(os.Rename(dir, filepath.Join(top, "old")), os.Mkdir(dir, 0o700), f.follow(path))
	if f.known[dir] == before || !heard(path) {
		t.Error("a change in the new folder is not heard")
	}
	// A link to another folder: both are watched, and after another turn only the two
	// that matter.
	one, two := filepath.Join(top, "one"), filepath.Join(top, "two")
	must(os.Mkdir(one, 0o700), os.Mkdir(two, 0o700), os.WriteFile(filepath.Join(one, "p"), nil, 0o600), os.WriteFile(filepath.Join(two, "p"), nil, 0o600),
		os.Remove(path), os.Symlink(filepath.Join(one, "p"), path), f.follow(path))
	if !heard(filepath.Join(one, "p")) {
		t.Error("a change behind the link is not heard")
	}
	must(os.Remove(path), os.Symlink(filepath.Join(two, "p"), path), f.follow(path))
	if watched := f.watcher.WatchList(); len(watched) != 2 || !slices.Contains(watched, dir) || !slices.Contains(watched, two) {
		t.Errorf("%q are watched", watched)
	}
	must(os.RemoveAll(dir))
	if err := f.follow(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is gone: %v", err)
	}
	must(os.Mkdir(dir, 0o700), f.follow(path))
	if !heard(path) {
		t.Error("a change is not heard after the folder was gone")
	}
}
