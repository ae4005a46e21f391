package policy

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// A file that is as it was when it was last tried is not tried again, good or
// not: one change is one report, however many events it makes.
func TestAFileThatIsAsItWasIsNotTriedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("policies: [{name: a, limits: 1/h}]")
	reports := 0
	s, err := Load(path, OnReload(func(error) { reports++ }))
	if err != nil {
		t.Fatal(err)
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(s.Close(), events.Close()); err != nil {
			t.Error(err)
		}
	}()
	w := &watcher{set: s, events: events}
	for i, text := range []string{"policies: [{name: a, limits: 1/h}]", "policies: [{name: a, limits: 2/h}]", "policies: [{name: a, limits: 2/x}]"} {
		write(text)
		for range 3 {
			w.reload()
		}
		if reports != i {
			t.Errorf("after %d changes there were %d reports", i, reports)
		}
	}
}
