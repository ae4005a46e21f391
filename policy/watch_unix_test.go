//go:build unix

package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
)

// Whatever becomes of the folders, the file is followed.
func TestAFileIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top := t.TempDir()
		in := func(names ...string) string { return filepath.Join(append([]string{top}, names...)...) }
		put := func(quota int, names ...string) { write(t, in(names...), fmt.Sprintf(quotaFile, quota)) }
		put(1, "releases", "1", "conf", "p.yaml")
		put(2, "releases", "2", "conf", "p.yaml")
		must(t, os.Symlink("releases/1", in("current")))
		w := watch(t, in("current", "conf", "p.yaml"))
		must(t, os.Symlink("releases/2", in("next")), os.Rename(in("next"), in("current")))
		must(t, w.soon("a link to another release", 2, 1))
		must(t, os.Rename(in("releases"), in("away")))
		_ = w.soon("a parent that was moved away", 2, 2)
		put(3, "away", "2", "conf", "p.yaml")
		must(t, os.Rename(in("away"), in("releases")))
		must(t, w.soon("a parent that was moved back", 3, 3))
		must(t, os.Rename(in("releases", "2", "conf"), in("old")))
		put(4, "releases", "2", "conf", "p.yaml")
		must(t, w.soon("a folder that was replaced", 4, 4))
		put(9, "old", "p.yaml")
		must(t, w.soon("the folder that it was in", 4, 4))
		must(t, os.Remove(in("releases", "2", "conf", "p.yaml")), syscall.Mkfifo(in("releases", "2", "conf", "p.yaml"), 0o600))
		if err := w.soon("a named pipe", 4, 5); err == nil || !strings.Contains(err.Error(), "is a named pipe") {
			t.Errorf("a named pipe: %v", err)
		}
		must(t, w.set.Close())
	})
}
