package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// lookEvery is the time between two readings of the file. A changed file is put in force
// when two readings are equal, so that half-written files are not.
const lookEvery = 500 * time.Millisecond

// Watch is Load, and puts the file in force again whenever it changes, until ctx ends
// or the Set is closed. A changed file is in force within two seconds after its last
// change. A file that cannot be read or has a mistake is rejected: the error is logged
// and given to [OnReload], and the former file stays in force.
//
// Watch reads the file twice a second and compares its content. So it finds changes of a symbolic
// link, as in a Kubernetes volume, of a folder, and on a network file system. To change the file,
// write another file and rename it over the watched one: then no reader sees half of it.
func Watch(ctx context.Context, path string, opts ...Option) (*Set, error) {
	first := read(path)
	if first.err != nil {
		return nil, first.err
	}
	s, err := Parse(path, first.text, opts...)
	if err != nil {
		return nil, err
	}
	ctx, s.unwatch = context.WithCancel(ctx)
	w := &watcher{set: s, path: path, tried: first, last: first}
	go func() {
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
	}()
	return s, nil
}

// watcher reads a file again and again.
type watcher struct {
	set   *Set
	path  string
	tried reading // was put in force or rejected
	last  reading
}

// reading is the result of reading the file.
type reading struct {
	text []byte
	err  error
}

func read(path string) reading {
	text, err := readFile(path)
	if err != nil {
		err = fmt.Errorf("policy: %w", err)
	}
	return reading{text, err}
}

func (r reading) equal(to reading) bool {
	return bytes.Equal(r.text, to.text) && fmt.Sprint(r.err) == fmt.Sprint(to.err)
}

// look puts the file in force if it has changed, but not since the last look.
func (w *watcher) look() {
	now := read(w.path)
	settled := now.equal(w.last)
	w.last = now
	if !settled || now.equal(w.tried) {
		return
	}
	w.tried = now
	s, err := w.set, now.err
	if err == nil {
		err = s.Replace(now.text)
	}
	switch {
	case errors.Is(err, core.ErrClosed):
		return
	case err != nil:
		s.options.log.Error("policy file rejected: the last good one stays in force", "file", w.path, "error", err)
	default:
		s.options.log.Info("policy file in force", "file", w.path, "policies", len(s.current.Load().policies))
	}
	if s.options.reloaded != nil {
		s.options.reloaded(err)
	}
}
