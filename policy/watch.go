package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file is left alone after it has changed, so that what an
// editor writes in several steps is read once.
const settle = 100 * time.Millisecond

// watcher reads a file again when it changes.
type watcher struct {
	set    *Set
	events *fsnotify.Watcher
	names  []string // directories that are watched
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// Watch does as Load, and reads the file again whenever it changes, until ctx
// ends or the Set is closed. A file that cannot be read or has something wrong
// with it is refused: that is logged as an error and given to [OnReload], and
// the last good one stays in force. Whoever replaces a file that is being
// watched should write another one beside it and rename that.
//
// Changes are noticed by inotify and its like, which network file systems do
// not have: call [Set.Reload] there, on a signal for instance. A symbolic link
// that is turned elsewhere, as Kubernetes does with its volumes, is noticed.
func Watch(ctx context.Context, path string, opts ...Option) (*Set, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	w := &watcher{events: events}
	// Watched before it is read: no change falls between the two.
	if err := w.watch(path); err != nil {
		return nil, errors.Join(fmt.Errorf("policy: %w", err), events.Close())
	}
	s, err := Load(path, opts...)
	if err != nil {
		return nil, errors.Join(err, events.Close())
	}
	w.set, s.watcher = s, w
	ctx, w.stop = context.WithCancel(ctx)
	w.done.Go(func() { w.run(ctx) })
	return s, nil
}

// watch watches the directories that the file is in: its own, and that which a
// symbolic link leads to. A file that is replaced is another one, so that
// watching the file itself would not do.
func (w *watcher) watch(path string) error {
	names := []string{filepath.Dir(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Dir(real) != names[0] {
		names = append(names, filepath.Dir(real))
	}
	for _, name := range names {
		if slices.Contains(w.names, name) {
			continue
		}
		if err := w.events.Add(name); err != nil {
			return fmt.Errorf("watching %s: %w", name, err)
		}
	}
	for _, name := range w.names {
		if !slices.Contains(names, name) {
			_ = w.events.Remove(name) // it may be gone
		}
	}
	w.names = names
	return nil
}

func (w *watcher) end() {
	w.stop()
	w.done.Wait()
}

func (w *watcher) run(ctx context.Context) {
	defer w.events.Close() //nolint:errcheck // nothing depends on it any more
	timer := time.NewTimer(0)
	<-timer.C
	for {
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case _, open := <-w.events.Events:
			if !open {
				return
			}
			timer.Reset(settle)
		case err, open := <-w.events.Errors: // such as events that were lost
			if !open {
				return
			}
			w.set.options.log.Warn("watching the policy file", "file", w.set.path, "error", err)
			timer.Reset(settle)
		case <-timer.C:
			w.reload()
		}
	}
}

// reload takes the file if it has changed.
func (w *watcher) reload() {
	s := w.set
	if err := w.watch(s.path); err != nil {
		s.options.log.Warn("watching the policy file", "file", s.path, "error", err)
	}
	text, err := readFile(s.path)
	s.change.Lock()
	same := err == nil && bytes.Equal(text, s.tried)
	if err == nil && !same && !s.closed {
		err = s.replace(text)
	}
	closed := s.closed
	s.change.Unlock()
	switch {
	case same || closed:
		return
	case err != nil:
		s.options.log.Error("policy file refused: the last good one stays in force", "file", s.path, "error", err)
	default:
		s.options.log.Info("policy file in force", "file", s.path, "policies", len(s.current.Load().limiters))
	}
	if s.options.reloaded != nil {
		s.options.reloaded(err)
	}
}
