package policy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// watched is a file that is being watched.
type watched struct {
	t       *testing.T
	path    string
	set     *policy.Set
	reloads chan error
	log     lines
}

// lines is what has been logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func watch(t *testing.T, path, text string) *watched {
	t.Helper()
	w := &watched{t: t, path: path, reloads: make(chan error, 100)}
	if text != "" {
		w.write(text)
	}
	var err error
	w.set, err = policy.Watch(t.Context(), path, policy.OnReload(func(err error) { w.reloads <- err }), policy.Log(slog.New(slog.NewTextHandler(&w.log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.set.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *watched) write(text string) {
	w.t.Helper()
	if err := replaceFile(w.path, text); err != nil {
		w.t.Fatal(err)
	}
}

// replaceFile puts a new file in the place of one, as editors do. Whoever reads it meanwhile
// finds the old text or the new one. A file that is written in place is empty for an instant.
func replaceFile(path, text string) error {
	return errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path))
}

func (w *watched) reloaded() error {
	w.t.Helper()
	select {
	case err := <-w.reloads:
		return err
	case <-time.After(10 * time.Second):
		w.t.Fatal("the file is not read again")
		return nil
	}
}

// left is what one policy has left of its quota.
func (w *watched) left(name string) int64 {
	w.t.Helper()
	d, err := w.set.Limiter().Peek(w.t.Context(), 1, core.Hit{Rule: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return d.Remaining
}

func TestAWatchedFileIsReadAgainWhenItChanges(t *testing.T) {
	w := watch(t, filepath.Join(t.TempDir(), "p.yaml"), "policies: [{name: a, limits: 5/h}]")
	w.set.Check(&explained{})
	w.write("policies: [{name: a, limits: 9/h}]")
	if err := w.reloaded(); err != nil {
		t.Fatal(err)
	}
	if got := w.left("a"); got != 8 {
		t.Errorf("%d left of 9 after 1, want 8", got)
	}
	w.write("policies: [{name: a, limits: 9/x}]")
	if err := w.reloaded(); len(policy.Errors(err)) != 1 || policy.Errors(err)[0].Line != 1 {
		t.Errorf("a broken file: %v", err)
	}
	if got := w.left("a"); got != 8 {
		t.Errorf("%d left after a broken file, want 8", got)
	}
	if log := w.log.String(); strings.Count(log, "level=INFO") != 1 || strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "the last good one stays") {
		t.Errorf("the log:\n%s", log)
	}
	w.write("policies: [{name: a, limits: 7/h}]")
	if err := w.reloaded(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	if err := w.reloaded(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
	if got := w.left("a"); got != 6 {
		t.Errorf("%d left after the file has gone, want 6", got)
	}
	w.write("policies: [{name: a, limits: 3/h}]")
	if err := w.reloaded(); err != nil || w.left("a") != 2 {
		t.Errorf("the file is back: %v, %d left", err, w.left("a"))
	}
}

// The way of Kubernetes: the file is a link to a link that is turned elsewhere.
func TestAWatchedLinkThatIsTurned(t *testing.T) {
	dir := t.TempDir()
	for i, quota := range []string{"5", "6", "7"} {
		sub := filepath.Join(dir, fmt.Sprint("v", i))
		if err := errors.Join(os.Mkdir(sub, 0o700), os.WriteFile(filepath.Join(sub, "p.yaml"), []byte("policies: [{name: a, limits: "+quota+"/h}]"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("v0", filepath.Join(dir, "data")), os.Symlink(filepath.Join("data", "p.yaml"), filepath.Join(dir, "p.yaml"))); err != nil {
		t.Fatal(err)
	}
	w := watch(t, filepath.Join(dir, "p.yaml"), "")
	for i, want := range []int64{6, 7} {
		if err := errors.Join(os.Symlink(fmt.Sprint("v", i+1), filepath.Join(dir, "tmp")), os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "data"))); err != nil {
			t.Fatal(err)
		}
		if err := w.reloaded(); err != nil {
			t.Fatal(err)
		}
		if got := w.left("a"); got != want {
			t.Errorf("%d left, want %d", got, want)
		}
	}
	// And the file that the link leads to may change where it is.
	if err := os.WriteFile(filepath.Join(dir, "v2", "p.yaml"), []byte("policies: [{name: a, limits: 8/h}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.reloaded(); err != nil || w.left("a") != 8 {
		t.Errorf("%v, %d left, want 8", err, w.left("a"))
	}
}

func TestWatchingEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	if _, err := policy.Watch(t.Context(), path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("a file that is not there: %v", err)
	}
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	if _, err := policy.Watch(t.Context(), filepath.Join(nowhere, "p.yaml")); err == nil || !strings.Contains(err.Error(), nowhere) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := os.WriteFile(path, []byte("policies: [{name: a, limits: 5/x}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Watch(t.Context(), path); len(policy.Errors(err)) != 1 {
		t.Errorf("a broken file: %v", err)
	}
	if err := os.WriteFile(path, []byte("policies: [{name: a, limits: 5/h}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, err := policy.Watch(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	cancel() // goleak sees whether that is enough
	if d := s.Check(&explained{}); !d.Allowed {
		t.Errorf("a Set that no longer watches: %+v", d)
	}
	if err := s.Reload(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
