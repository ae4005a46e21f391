//go:build unix

package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const quotaFile = "policies: [{name: a, limits: %d/h}]"

func put(t *testing.T, path string, quota int) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, fmt.Appendf(nil, quotaFile, quota), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// watching watches a file in the time of the test, with these options.
func watching(t *testing.T, path string, opts ...Option) *Set {
	t.Helper()
	s, err := Load(path, append(opts, Log(slog.New(slog.NewTextHandler(io.Discard, nil))))...)
	if err != nil {
		t.Fatal(err)
	}
	s.watcher = &watcher{set: s}
	s.watcher.start(t.Context())
	return s
}

func quota(s *Set) int64 { return s.current.Load().Policies[0].Limits[0].Quota }

// expectSoon waits two seconds, the promise of Watch, and says what is to be in
// force then.
func expectSoon(t *testing.T, s *Set, what string, want int64) {
	t.Helper()
	time.Sleep(2 * time.Second) // of the test's own time
	synctest.Wait()
	if got := quota(s); got != want {
		t.Errorf("%s: the quota is %d two seconds later, want %d", what, got, want)
	}
}

// Whatever becomes of the folders, the file is followed.
func TestAFileIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top := t.TempDir()
		must := func(errs ...error) {
			t.Helper()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
		}
		in := func(names ...string) string { return filepath.Join(append([]string{top}, names...)...) }
		put(t, in("releases", "1", "conf", "p.yaml"), 1)
		put(t, in("releases", "2", "conf", "p.yaml"), 2)
		must(os.Symlink("releases/1", in("current")))
		s := watching(t, in("current", "conf", "p.yaml"))
		must(os.Symlink("releases/2", in("next")), os.Rename(in("next"), in("current")))
		expectSoon(t, s, "a link to another release", 2)
		must(os.Rename(in("releases"), in("away")))
		time.Sleep(3 * time.Second)
		put(t, in("away", "2", "conf", "p.yaml"), 3)
		must(os.Rename(in("away"), in("releases")))
		expectSoon(t, s, "a parent that was moved away and back", 3)
		must(os.Rename(in("releases", "2", "conf"), in("old")))
		put(t, in("releases", "2", "conf", "p.yaml"), 4)
		expectSoon(t, s, "a folder that was replaced", 4)
		put(t, in("old", "p.yaml"), 9)
		expectSoon(t, s, "the folder that it was in", 4)
		must(os.Remove(in("releases", "2", "conf", "p.yaml")), syscall.Mkfifo(in("releases", "2", "conf", "p.yaml"), 0o600))
		expectSoon(t, s, "a named pipe", 4)
		if err := s.Reload(); err == nil || err.Error() != "policy: "+in("current", "conf", "p.yaml")+" is a named pipe: want a regular file" {
			t.Errorf("Reload: %v", err)
		}
		must(os.Remove(in("releases", "2", "conf", "p.yaml")))
		put(t, in("releases", "2", "conf", "p.yaml"), 5)
		expectSoon(t, s, "after a named pipe", 5)
		must(s.Close())
	})
}

// One change is one report, and so is one failure, however often it is read. A
// file that is being written is left alone until it stays as it is.
func TestOneChangeIsOneReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "p.yaml")
		put(t, path, 1)
		var reports atomic.Int64
		s := watching(t, path, OnReload(func(error) { reports.Add(1) }))
		for i, text := range []string{fmt.Sprintf(quotaFile, 1), fmt.Sprintf(quotaFile, 2), "policies: [{name: a, limits: 2/x}]", "", fmt.Sprintf(quotaFile, 2)} {
			err := os.WriteFile(path, []byte(text), 0o600)
			if text == "" {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if n := reports.Load(); n != int64(i) {
				t.Errorf("after %d changes there were %d reports", i, n)
			}
		}
		// Half of a file for less than the time it has to settle.
		for range 20 {
			if err := os.WriteFile(path, []byte("policies: [{name: a, limits: 7"), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(lookEvery / 2)
			put(t, path, 7)
			time.Sleep(1500 * time.Millisecond)
		}
		synctest.Wait()
		if n := reports.Load(); quota(s) != 7 || n != 5 {
			t.Errorf("%d reports, a quota of %d: half of a file was tried", n, quota(s))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A file that is never the same twice is taken all the same, after it has been left
// alone for a while.
func TestAFileThatKeepsChangingIsTakenAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "p.yaml")
		put(t, path, 1)
		var taken atomic.Int64 // nanoseconds from the first change
		var first time.Time
		s := watching(t, path, OnReload(func(err error) {
			if err == nil {
				taken.CompareAndSwap(0, int64(time.Since(first)))
			}
		}))
		time.Sleep(lookEvery/2 + time.Millisecond) // of the test's own time: no change is at the moment of a reading
		first = time.Now()
		for i := range 40 {
			put(t, path, i+2)
			time.Sleep(lookEvery / 2)
		}
		synctest.Wait()
		if after := time.Duration(taken.Load()); after < unsettled || after > 2*time.Second {
			t.Errorf("the file was taken after %v, want %v to 2s", after, unsettled)
		}
		if got := quota(s); got < 5 {
			t.Errorf("the quota is %d: the file was not taken again", got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Close ends although OnReload never returns.
func TestCloseEndsWhateverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "p.yaml")
		put(t, path, 1)
		hang := make(chan struct{})
		s := watching(t, path, OnReload(func(error) { <-hang }))
		put(t, path, 2)
		time.Sleep(2 * time.Second)
		if err := s.Close(); err == nil {
			t.Error("Close does not say that watching has not ended")
		}
		close(hang)
		synctest.Wait()
	})
}

// What a program has put in force stays until the file changes.
func TestReplaceStaysUntilTheFileChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "p.yaml")
		put(t, path, 5)
		s := watching(t, path)
		if err := s.Replace(fmt.Appendf(nil, quotaFile, 7)); err != nil {
			t.Fatal(err)
		}
		expectSoon(t, s, "the file is as it was", 7)
		put(t, path, 6)
		expectSoon(t, s, "the file has changed", 6)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

const (
	oneAnHour = "policies: [{name: a, limits: 1/h}]"
	twoAnHour = "policies: [{name: a, limits: 2/h}]"
)

// looking returns a watcher of a file that looks only if a test has it look, and
// what it logs.
func looking(t *testing.T) (w *watcher, path string, log *bytes.Buffer) {
	t.Helper()
	path, log = filepath.Join(t.TempDir(), "p.yaml"), new(bytes.Buffer)
	write(t, path, oneAnHour)
	s, err := Load(path, Log(slog.New(slog.NewTextHandler(log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	log.Reset()
	return &watcher{set: s}, path, log
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// logged fails the test unless the log has just these lines, and empties it.
func logged(t *testing.T, log *bytes.Buffer, want ...string) {
	t.Helper()
	text := log.String()
	log.Reset()
	if n := strings.Count(text, "\n"); n != len(want) {
		t.Errorf("%d lines are logged, want %d: %s", n, len(want), text)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the log has no %q: %s", w, text)
		}
	}
}

// The log says what has become of a changed file, once.
func TestTheLogOfALook(t *testing.T) {
	w, path, log := looking(t)
	twice := func() {
		t.Helper()
		w.look()
		logged(t, log)
		w.look()
	}
	w.look()
	logged(t, log)
	write(t, path, twoAnHour)
	twice()
	logged(t, log, "policy file in force")
	write(t, path, "nonsense: [")
	twice()
	logged(t, log, "policy file rejected")
	w.look()
	logged(t, log)
	write(t, path, twoAnHour)
	twice()
	logged(t, log, "policy file in force")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	twice()
	logged(t, log, "policy file rejected")
	w.look()
	logged(t, log)
	write(t, path, twoAnHour)
	w.look()
	logged(t, log, "can be read again")
	w.look()
	logged(t, log)
}

// What Reload has tried, in force or rejected, a look does not try again.
func TestALookLeavesWhatReloadHasTried(t *testing.T) {
	w, path, log := looking(t)
	for _, text := range []string{twoAnHour, "nonsense: ["} {
		write(t, path, text)
		if err := w.set.Reload(); (err == nil) != (text == twoAnHour) {
			t.Errorf("%q: %v", text, err)
		}
		for range 3 {
			w.look()
		}
		logged(t, log)
	}
	write(t, path, oneAnHour)
	w.look()
	w.look()
	logged(t, log, "policy file in force")
}
