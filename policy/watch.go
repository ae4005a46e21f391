package policy

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// lookEvery is the time between two readings of the file. A changed file is put in
	// force when two readings are equal, so that half-written files are not.
	lookEvery = 500 * time.Millisecond
	// unsettled is how long a file that keeps changing is not put in force.
	unsettled = 750 * time.Millisecond
)

// watcher reads a file again and again.
type watcher struct {
	set  *Set
	stop context.CancelFunc
	done sync.WaitGroup

	pending *reading // what was read last, if it is not what has been tried
	since   time.Time
	failed  string // the error of reading that was reported last
}

// reading is the result of reading the file.
type reading struct {
	text []byte
	err  error
}

func (r *reading) equal(to *reading) bool {
	return bytes.Equal(r.text, to.text) && fmt.Sprint(r.err) == fmt.Sprint(to.err)
}

// Watch is Load, and puts the file in force again whenever it changes, until ctx ends
// or the Set is closed. A changed file is in force within two seconds. A file
// that cannot be read or has a mistake is rejected: the error is logged and
// given to [OnReload], and the former file stays in force.
//
// Watch reads the file twice a second and compares its content. So it finds a change
// of a symbolic link, as in a Kubernetes volume, of a folder, and on a network file
// system. To change the file, write another file and rename it over the watched one:
// then no reader sees half of it.
func Watch(ctx context.Context, path string, opts ...Option) (*Set, error) {
	s, err := Load(path, opts...)
	if err != nil {
		return nil, err
	}
	s.watcher = &watcher{set: s}
	s.watcher.start(ctx)
	return s, nil
}

func (w *watcher) start(ctx context.Context) {
	ctx, w.stop = context.WithCancel(ctx)
	w.done.Go(func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				w.look()
			}
		}
	})
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

// look reads the file and puts it in force if it has changed and settled.
func (w *watcher) look() {
	s, now := w.set, &reading{}
	now.text, now.err = readFile(s.path)
	s.change.Lock()
	same := now.err == nil && bytes.Equal(now.text, s.tried)
	s.change.Unlock()
	switch {
	case same:
		if w.failed != "" {
			s.options.log.Info("policy file can be read again: it has not changed", "file", s.path)
		}
		w.pending, w.failed = nil, ""
	case now.err != nil && now.err.Error() == w.failed:
		w.pending = nil
	case w.pending == nil:
		w.pending, w.since = now, time.Now()
	case !now.equal(w.pending) && time.Since(w.since) < unsettled:
		w.pending = now
	default:
		w.pending = nil
		w.take(now)
	}
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
