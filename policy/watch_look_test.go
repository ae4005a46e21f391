package policy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
		if !w.look() || w.look() {
			t.Error("a changed file is not read twice")
		}
	}
	if w.look() {
		t.Error("an unchanged file is read again")
	}
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

// A file that changes with every reading is put in force once it has done so for
// as long as unsettled.
func TestAFileThatKeepsChanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, path, log := looking(t)
		for i := range int(unsettled / settle) {
			write(t, path, twoAnHour+strings.Repeat(" ", i))
			if !w.look() {
				t.Fatalf("after %v a file that changes is put in force", time.Duration(i)*settle)
			}
			time.Sleep(settle)
		}
		logged(t, log)
		write(t, path, twoAnHour+" # the last")
		if w.look() {
			t.Errorf("after %v a file that changes is not put in force", unsettled)
		}
		logged(t, log, "policy file in force")
	})
}

// Two readings are equal if their texts and errors are.
func TestEqualReadings(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	all := []*reading{{text: []byte("x")}, {text: []byte("y")}, {err: a}, {err: b}, {text: []byte("x"), err: a}}
	for i, r := range all {
		for j, to := range all {
			if r.equal(to) != (i == j) {
				t.Errorf("%+v and %+v: equal %v", *r, *to, r.equal(to))
			}
		}
		if r.equal(nil) {
			t.Errorf("%+v is equal to no reading", *r)
		}
	}
}

// An error of watching the folders is logged once, until another one comes or all
// is well in between.
func TestErrorsOfWatchingAreLoggedOnce(t *testing.T) {
	w, _, log := looking(t)
	a, b := errors.New("this is a"), errors.New("this is b")
	for _, step := range []struct {
		err  error
		want []string
	}{{nil, nil}, {a, []string{"this is a"}}, {a, nil}, {b, []string{"this is b"}}, {nil, nil}, {b, []string{"this is b"}}, {b, nil}} {
		w.sees(step.err)
		logged(t, log, step.want...)
	}
}

// Watch listens to the operating system's events.
func TestWatchListensToEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	write(t, path, oneAnHour)
	s, err := Watch(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	if w := s.watcher; (w.folders == nil) != (w.events == nil) || (w.folders == nil) != (w.errors == nil) {
		t.Errorf("folders %v, events %v, errors %v", w.folders, w.events, w.errors)
	}
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
			if w.look() {
				t.Errorf("%q is read again", text)
			}
		}
		logged(t, log)
	}
	write(t, path, oneAnHour)
	if !w.look() || w.look() {
		t.Error("a mended file is not read twice")
	}
	logged(t, log, "policy file in force")
}
