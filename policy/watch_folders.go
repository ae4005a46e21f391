package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// folders are the folders whose events may mean that the file has changed: the
// file's own folder and the folder to which symbolic links lead. A watch of the
// file itself would miss its replacement.
type folders struct {
	watcher *fsnotify.Watcher
	known   map[string]os.FileInfo // what was watched under a name
}

func newFolders() (*folders, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return &folders{w, map[string]os.FileInfo{}}, nil
}

func (f *folders) close() error {
	if f == nil {
		return nil
	}
	return f.watcher.Close()
}

// follow watches the folders that the file is in now. A folder may have been replaced
// by another one of the same name.
func (f *folders) follow(path string) error {
	names := []string{filepath.Dir(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Dir(real) != names[0] {
		names = append(names, filepath.Dir(real))
	}
	watched := f.watcher.WatchList()
	for name := range f.known {
		if !slices.Contains(names, name) {
			_ = f.watcher.Remove(name) // it may be gone
			delete(f.known, name)
		}
	}
	var errs []error
	for _, name := range names {
		info, err := os.Stat(name)
		if err == nil && f.known[name] != nil && os.SameFile(info, f.known[name]) && slices.Contains(watched, name) {
			continue
		}
		_ = f.watcher.Remove(name) // it may not have been watched
		delete(f.known, name)
		if err == nil {
			err = f.watcher.Add(name)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("watching %s: %w", name, err))
			continue
		}
		f.known[name] = info
	}
	return errors.Join(errs...)
}
