package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is the time between two readings of a changed file. The file is put in
	// force when both are equal, so that half-written files are not.
	settle = 100 * time.Millisecond
	// unsettled is how long a file that keeps changing is not put in force.
	unsettled = 500 * time.Millisecond
	// pollEvery is the time between two readings without an event.
	pollEvery = time.Second
)

// watcher reads a file again when it changes. An event makes it read soon. It compares
// the content, so that a lost event only costs up to a second.
type watcher struct {
	set     *Set
	folders *folders // nil: only polling
	events  <-chan fsnotify.Event
	errors  <-chan error
	stop    context.CancelFunc
	done    sync.WaitGroup

	pending *reading // what was read last, if it is not what has been tried
	since   time.Time
	failed  string // the error of reading that was reported last
	blind   string // the error of watching folders that was reported last
}

// reading is the result of reading the file.
type reading struct {
	text []byte
	err  error
}

func (r *reading) equal(to *reading) bool {
	return to != nil && bytes.Equal(r.text, to.text) && fmt.Sprint(r.err) == fmt.Sprint(to.err)
}

// Watch is Load, and reads the file again whenever it changes, until ctx ends
// or the Set is closed. A changed file is in force within two seconds. A file
// that cannot be read or has a mistake is rejected: the error is logged and
// given to [OnReload], and the former file stays in force.
//
// Watch finds changes by events of the operating system and by reading the file once
// a second. This also works if a symbolic link is changed, as in a Kubernetes volume,
// if a folder is moved or replaced, and on network file systems. To change the file,
// write another file and rename it over the watched one: then no reader sees half of
// it.
func Watch(ctx context.Context, path string, opts ...Option) (*Set, error) {
	w := &watcher{}
	var unwatched error
	if w.folders, unwatched = newFolders(); w.folders != nil {
		w.events, w.errors = w.folders.watcher.Events, w.folders.watcher.Errors
		// The folders are watched before the file is read, so that no change is missed.
		unwatched = w.folders.follow(path)
	}
	s, err := Load(path, opts...)
	if err != nil {
		return nil, errors.Join(err, w.folders.close())
	}
	w.set, s.watcher = s, w
	w.sees(unwatched)
	w.start(ctx)
	return s, nil
}

func (w *watcher) start(ctx context.Context) {
	ctx, w.stop = context.WithCancel(ctx)
	w.done.Go(func() { w.run(ctx) })
}

// end stops watching. It waits for a reading that is under way and for OnReload, at
// most closeWithin: a file system may never answer.
func (w *watcher) end() error {
	w.stop()
	ended := make(chan struct{})
	go func() {
		w.done.Wait()
		close(ended)
	}()
	timer := time.NewTimer(closeWithin)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("policy: %s: watching has not ended after %v: reading the file or the function of OnReload hangs", w.set.path, closeWithin)
	}
}

func (w *watcher) run(ctx context.Context) {
	defer w.folders.close() //nolint:errcheck // nothing depends on it any more
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	timer := time.NewTimer(settle)
	timer.Stop()
	defer timer.Stop()
	armed := false
	// Further events do not delay the next look.
	soon := func() {
		if !armed {
			timer.Reset(settle)
			armed = true
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-w.events:
			if !open {
				w.events = nil
			}
			soon()
		case err, open := <-w.errors: // such as events that were lost
			if !open {
				w.errors = nil
			} else {
				w.sees(err)
			}
			soon()
		case <-poll.C:
			soon()
		case <-timer.C:
			if armed = false; w.look() {
				soon()
			}
		}
	}
}

// sees logs an error of watching the folders, unless it is the same as before.
func (w *watcher) sees(err error) {
	switch {
	case err == nil:
		w.blind = ""
	case err.Error() != w.blind:
		w.blind = err.Error()
		w.set.options.log.Warn("policy file: changes are noticed only once a second", "file", w.set.path, "error", err)
	}
}

// look reads the file and puts it in force if it has changed and settled. It returns
// whether to look again soon.
func (w *watcher) look() (again bool) {
	s := w.set
	if w.folders != nil {
		w.sees(w.folders.follow(s.path))
	}
	now := &reading{}
	now.text, now.err = readFile(s.path)
	s.change.Lock()
	same := now.err == nil && bytes.Equal(now.text, s.tried)
	s.change.Unlock()
	if same || now.err != nil && now.err.Error() == w.failed {
		if w.pending = nil; same && w.failed != "" {
			w.failed = ""
			s.options.log.Info("policy file can be read again: it has not changed", "file", s.path)
		}
		return false
	}
	if w.pending == nil {
		w.since = time.Now()
	}
	if !now.equal(w.pending) && time.Since(w.since) < unsettled {
		w.pending = now
		return true
	}
	w.pending = nil
	w.take(now)
	return false
}

// take puts the text of a reading in force, or reports why it cannot.
func (w *watcher) take(now *reading) {
	s, err := w.set, now.err
	w.failed = ""
	if err != nil {
		w.failed = err.Error()
	} else {
		s.change.Lock()
		closed := s.closed
		if !closed {
			s.tried = now.text
			err = s.replace(now.text)
		}
		s.change.Unlock()
		if closed {
			return
		}
	}
	if err != nil {
		s.options.log.Error("policy file rejected: the last good one stays in force", "file", s.path, "error", err)
	} else {
		s.options.log.Info("policy file in force", "file", s.path, "policies", len(s.current.Load().policies))
	}
	if s.options.reloaded != nil {
		s.options.reloaded(err)
	}
}
