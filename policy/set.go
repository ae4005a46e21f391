package policy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/floodgate-go/floodgate/core"
)

// Set is the policies of a file at work. It is made by [Load], [Parse] or
// [Watch], and is a [core.Checker] that applies all of them: every adapter's
// Middleware takes it. Its methods may be called concurrently.
//
// Of the policies that are for a request, all have to admit it, or it is charged
// to none. A shadow policy decides and counts for itself, is reported to
// [OnDisallowed], and changes nothing of what becomes of the request.
type Set struct {
	file    string // as it was given
	path    string // "" where there is none
	options *options
	current atomic.Pointer[version]
	mounts  atomic.Int32

	change   sync.Mutex // one change at a time
	tried    []byte     // the text that was last tried, in force or refused
	shared   opened     // the zero value where the file has no store
	local    *core.Memory
	limiters map[place]*core.Limiter // every one that has been bound, as it was last
	wanted   map[string]bool         // names that Only was asked for
	warned   map[string]bool         // warnings that have been logged
	closed   bool
	watcher  *watcher // nil: none
}

// place is where a limiter's counters are.
type place struct {
	shared bool
	name   string
}

// version is what one reading of the file has made. It stays as it is, so that
// a request is judged by one version as a whole.
type version struct {
	spec     *fileSpec
	limiters []*limiter // in the order of the file
}

// Load reads the policies of a file. The error is what the operating system
// says, or has all that is wrong with the file: see [Errors].
func Load(path string, opts ...Option) (*Set, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return load(path, path, text, opts)
}

// Parse reads policies from text; name stands for the file in errors.
func Parse(name string, text []byte, opts ...Option) (*Set, error) {
	return load(name, "", text, opts)
}

func load(file, path string, text []byte, opts []Option) (*Set, error) {
	s := &Set{file: file, path: path, options: newOptions(opts), limiters: map[place]*core.Limiter{}, wanted: map[string]bool{}, warned: map[string]bool{}}
	if err := s.replace(text); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// readFile reads no more of a file than shows that it is too long. It opens
// nothing but regular files: a named pipe in the file's place would never end,
// and a device may do anything.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	if err != nil {
		return nil, err
	}
	// What is there may have changed since: opening must not wait for anybody.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the caller has chosen the file
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read only
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(path, info)
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

func notRegular(path string, info os.FileInfo) error {
	what := "neither a file nor a folder"
	switch mode := info.Mode(); {
	case mode.IsDir():
		what = "a folder"
	case mode&os.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&os.ModeSocket != 0:
		what = "a socket"
	case mode&os.ModeDevice != 0:
		what = "a device"
	}
	return fmt.Errorf("%s is %s: want a regular file", path, what)
}

// Reload reads the file again and puts it in force, at one moment for all
// requests that come after. Counters of policies that keep their name and
// place, and of limits that keep their algorithm, window, precision and
// alignment, keep their count. After an error nothing has changed. The section
// store, and the place of local counters, cannot change while a program runs.
func (s *Set) Reload() error {
	if s.path == "" {
		return fmt.Errorf("policy: %s was not read from a file: use Replace", s.file)
	}
	text, err := readFile(s.path)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	return s.Replace(text)
}

// Replace does as Reload, with text that comes from elsewhere.
func (s *Set) Replace(text []byte) error {
	s.change.Lock()
	defer s.change.Unlock()
	return s.replace(text)
}

func (s *Set) replace(text []byte) error {
	if s.closed {
		return fmt.Errorf("policy: %s: %w", s.file, core.ErrClosed)
	}
	s.tried = text
	r := &reader{file: s.file}
	spec := r.read(text, s.options)
	if spec != nil && len(r.errs) == 0 {
		if v := s.build(r, spec); len(r.errs) == 0 {
			s.current.Store(v)
			s.warn(spec.doubts)
			return nil
		}
	}
	return join(r.errs)
}

// Close ends watching the file, and closes the stores that the Set has opened.
// Decisions after that fail.
func (s *Set) Close() error {
	s.change.Lock()
	w, closed := s.watcher, s.closed
	s.closed = true
	s.change.Unlock()
	if closed {
		return nil
	}
	var errs []error
	if w != nil {
		errs = append(errs, w.end())
	}
	if s.shared.close != nil {
		errs = append(errs, s.shared.close())
	}
	if s.local != nil {
		errs = append(errs, s.local.Close())
	}
	return errors.Join(errs...)
}

// Limiters returns the limiters that are in force, one of each policy, in the
// order of the file. A changed file brings others, which share their counters
// and Stats: ask again, or use [Set.Only].
func (s *Set) Limiters() []*core.Limiter {
	v := s.current.Load()
	all := make([]*core.Limiter, len(v.limiters))
	for i, l := range v.limiters {
		all[i] = l.Limiter
	}
	return all
}

// Limiter returns the limiter of a policy that is in force; see Limiters. It
// limits only what the policy's match is for.
func (s *Set) Limiter(name string) (*core.Limiter, bool) {
	if l := s.current.Load().limiter(name); l != nil {
		return l.Limiter, true
	}
	return nil, false
}

func (v *version) limiter(name string) *limiter {
	for _, l := range v.limiters {
		if l.spec.name == name {
			return l
		}
	}
	return nil
}
