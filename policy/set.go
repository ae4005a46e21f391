package policy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/floodgate-go/floodgate/core"
)

// Set is the policies of a file at work. It is made by [Load], [Parse] or
// [Watch], and is a [core.Checker] that applies all of them: every adapter's
// Middleware takes it. Its methods may be called concurrently.
//
// All policies of a file are the rules of one limiter: of the policies that are
// for a request, all have to allow it, or it is charged to none, in one step. If
// some count in the file's store and some in this process, it is charged in the
// process first, and given back if the store denies it. Shadow policies are
// decided on apart from the others, are reported to [OnDisallowed], and change
// nothing of what becomes of the request.
type Set struct {
	file    string // as it was given
	path    string // "" where there is none
	options *options
	current atomic.Pointer[fileSpec] // what is in force
	limiter *core.Limiter            // of all policies; never replaced

	change  sync.Mutex // one change at a time
	tried   []byte     // the file's text that was last tried, in force or refused
	shared  opened     // the zero value where the file has no store
	local   *core.Memory
	places  *places         // over shared and local; nil if there is one store
	wanted  map[string]bool // names that Only was asked for
	warned  map[string]bool // warnings that have been logged
	closed  bool
	watcher *watcher // nil: none
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
	s := &Set{file: file, path: path, options: newOptions(opts), wanted: map[string]bool{}, warned: map[string]bool{}}
	s.tried = text
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
	s.change.Lock()
	defer s.change.Unlock()
	s.tried = text
	return s.replace(text)
}

// Replace does as Reload, with text that comes from elsewhere. It is in force until
// the file changes.
func (s *Set) Replace(text []byte) error {
	s.change.Lock()
	defer s.change.Unlock()
	return s.replace(text)
}

func (s *Set) replace(text []byte) error {
	if s.closed {
		return fmt.Errorf("policy: %s: %w", s.file, core.ErrClosed)
	}
	r := &reader{file: s.file}
	spec := r.read(text, s.options)
	if spec != nil && len(r.errs) == 0 {
		if s.build(r, spec); len(r.errs) == 0 {
			s.current.Store(spec)
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

// Limiter returns the limiter that decides for all policies; it stays the same
// when the file changes. Its rules are named as [Set.Policies] says. Hits of its
// Take, Peek and Reset name a policy's counters whatever the policy's match is.
func (s *Set) Limiter() *core.Limiter { return s.limiter }

// Policy describes a policy that is in force.
type Policy struct {
	// Name is the policy's name.
	Name string
	// Shadow says that the policy denies nothing, and Shared that it counts in
	// the file's store.
	Shadow, Shared bool
	// Rules are the policy's rules; of a rule with tiers, one for each tier that
	// is limited.
	Rules []PolicyRule
}

// PolicyRule describes a rule of a policy.
type PolicyRule struct {
	// Name is the name of the rule in [Set.Limiter], in decisions and in the
	// store: the policy's name, followed by a dot and the rule's name if the
	// policy has the field rules, followed by a dash and the tier's name if the
	// rule has tiers.
	Name string
	// Limits are the limits of each key.
	Limits []core.Limit
}

// Policies returns the policies that are in force, in the order of the file.
func (s *Set) Policies() []Policy {
	spec := s.current.Load()
	all := make([]Policy, len(spec.policies))
	for i, p := range spec.policies {
		all[i] = Policy{Name: p.name, Shadow: p.shadow, Shared: p.shared}
		for j := range p.rules {
			for _, r := range p.rules[j].coreRules(s.options) {
				all[i].Rules = append(all[i].Rules, PolicyRule{r.Name, slices.Clone(r.Limits)})
			}
		}
	}
	return all
}

// PolicyOf returns the name of the policy that a rule of [Set.Limiter] belongs
// to, such as core.Decision.Rule in an audit log; "" if there is none in force.
func (s *Set) PolicyOf(rule string) string {
	if p := s.current.Load().byRule[rule]; p != nil {
		return p.name
	}
	return ""
}

func (f *fileSpec) policy(name string) *policySpec {
	for _, p := range f.policies {
		if p.name == name {
			return p
		}
	}
	return nil
}
