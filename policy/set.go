package policy

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/regularfile"
	"github.com/floodgate-go/floodgate/policy/internal/file"
)

// Set is the policies of a file in force. [Load], [Parse] and [Watch] return one. It
// is a [core.Checker] that applies all policies: every adapter's Middleware takes
// it. Its methods may be called concurrently.
//
// All policies of a file are rules of one limiter, which decides on a request in one
// step: all policies that apply must allow it, or it is charged to none. If some
// policies count in the file's store and some in this process, the request is
// charged in the process first, and refunded there if the store denies it.
//
// Policies with dry-run: true are rules of a second limiter, see [Set.DryRun]. It decides
// on each request that the first one allows, and denies nothing.
type Set struct {
	file    string // as it was given
	path    string // "" if the policies are not from a file
	options *options
	current atomic.Pointer[enforcedFile] // what is in force
	limiter *core.Limiter                // of the policies that can deny; never replaced
	dry     *core.Limiter                // of the dry run; nil until a file has one

	folder string // of the files that the file names; "" if it is not known

	change  sync.Mutex // one change at a time
	tried   []byte     // the file's text that was last tried, in force or rejected
	shared  opened     // the zero value if the file has no store
	local   *core.Memory
	places  *places         // over shared and local; nil if there is one store
	wanted  map[string]bool // names that Only was asked for
	warned  map[string]bool // warnings that have been logged
	closed  bool
	watcher *watcher // nil: none

	tables    map[tableID]*table // of the file in force
	life      context.Context    //nolint:containedctx // ends when the Set is closed
	die       context.CancelFunc // ends it
	watching  context.Context    //nolint:containedctx // of Watch; nil: none
	following sync.WaitGroup     // for the goroutines that read tables again
}

// Load reads the policies of a file. The error is the operating system's, or has all
// mistakes of the file: see [Errors]. It wraps [core.ErrConfig] if an option is nil or
// its store cannot be used.
func Load(path string, opts ...Option) (*Set, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return load(path, path, text, opts)
}

// Parse reads policies from text; errors have name as the file's name.
func Parse(name string, text []byte, opts ...Option) (*Set, error) {
	return load(name, "", text, opts)
}

func load(file, path string, text []byte, opts []Option) (*Set, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	s := &Set{file: file, path: path, options: o, wanted: map[string]bool{}, warned: map[string]bool{}}
	s.life, s.die = context.WithCancel(context.Background())
	if s.folder = o.folder; s.folder == "" && path != "" {
		s.folder = filepath.Dir(path)
	}
	s.tried = text
	next := s.prepare(text, true)
	s.change.Lock()
	err = s.replace(next)
	s.change.Unlock()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// MaxBytes is the size of the largest policy file, in bytes.
const MaxBytes = file.MaxBytes

// readFile reads at most one byte more than a file may have.
func readFile(path string) ([]byte, error) { return regularfile.Read(path, MaxBytes) }

// Reload reads the file again and puts it in force, at one moment for all later
// requests. A counter keeps its count if its policy keeps its name and counting, and
// its limit keeps its algorithm, window, precision and alignment. After an error
// nothing has changed. The fields name, store and local cannot change while a
// program runs.
func (s *Set) Reload() error {
	if s.path == "" {
		return fmt.Errorf("policy: %s was not read from a file: use Replace", s.file)
	}
	text, err := readFile(s.path)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	next := s.prepare(text, true)
	s.change.Lock()
	defer s.change.Unlock()
	s.tried = text
	return s.replace(next)
}

// Replace is Reload with text in place of the file. The text is in force until the
// file changes.
func (s *Set) Replace(text []byte) error {
	next := s.prepare(text, false)
	s.change.Lock()
	defer s.change.Unlock()
	return s.replace(next)
}

// replace puts a file in force. The caller holds the lock.
func (s *Set) replace(next *candidate) error {
	if s.closed {
		return fmt.Errorf("policy: %s: %w", s.file, core.ErrClosed)
	}
	m := next.mistakes
	if !m.found() {
		next.checkTables()
	}
	if !m.found() {
		f := enforce(next.spec, s.options, next.tables)
		if s.build(m, f); !m.found() {
			s.current.Store(f)
			s.adopt(next)
			s.warn(f.warnings(s.file))
			return nil
		}
	}
	return join(m.errs)
}

// Close stops watching the file, ends the reading of sources, and closes the stores that the Set has opened.
// Decisions after that fail.
func (s *Set) Close() error {
	s.change.Lock()
	w, closed, tables := s.watcher, s.closed, s.tables
	s.closed = true
	s.change.Unlock()
	if closed {
		return nil
	}
	errs := []error{s.endTables(tables)}
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

// Limiter returns the limiter of the policies that can deny; it stays the same
// when the file changes. Its rules are named as [Set.Policies] says. Hits of its
// Take, Peek and Reset name a policy's counters whatever the policy's match is.
func (s *Set) Limiter() *core.Limiter { return s.limiter }

// DryRun returns the limiter of the policies with dry-run: true, nil if the file in
// force has none. Its name is that of the file, followed by "-dry-run".
func (s *Set) DryRun() *core.Limiter { return s.current.Load().dry }

// Guarantees returns what the stores of the policies promise, all of them: see
// [core.Limiter.Guarantees].
func (s *Set) Guarantees() core.Guarantees { return s.limiter.Guarantees() }

// Policy describes a policy that is in force.
type Policy struct {
	// Name is the policy's name.
	Name string
	// DryRun reports whether the policy has dry-run: true and so denies nothing. Shared
	// reports whether it counts in the file's store.
	DryRun, Shared bool
	// Wait is the longest time that a request waits for its turn if the policy would
	// deny it, as the file says it. 0: no request waits. A dry run makes no request wait.
	Wait time.Duration
	// Rules are the policy's rules. A rule with tiers is one rule for each tier that
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
		all[i] = Policy{Name: p.Name, DryRun: p.DryRun, Shared: p.Shared, Wait: p.Wait}
		for j := range p.rules {
			for _, r := range p.rules[j].coreRules() {
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
		return p.Name
	}
	return ""
}

func (f *enforcedFile) policy(name string) *enforcedPolicy {
	for _, p := range f.policies {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Warnings returns parts of the file in force that are legal and probably
// mistakes: tiers, costs and keys that a client can choose, keys that a request
// may lack if the file does not set the field missing, keys by a route that may
// be unknown, quotas of 0, in a table too, and lists of addresses that contradict each other. Each
// warning is also logged once.
func (s *Set) Warnings() []*Error { return s.current.Load().warnings(s.file) }

// warn logs the warnings of a file that have not been logged before.
func (s *Set) warn(doubts []*Error) {
	for _, e := range doubts {
		text := e.Error()
		if !s.warned[text] {
			s.warned[text] = true
			s.options.log.Warn("policy file: probably a mistake", "file", e.File, "line", e.Line, "field", e.Field, "problem", e.Problem, "hint", e.Hint)
		}
	}
}

// warnings returns the warnings of a file with this name.
func (f *enforcedFile) warnings(name string) []*Error {
	m := &mistakes{file: name}
	for _, d := range f.Doubts {
		m.add(d.Place, d.Text, d.Hint)
	}
	f.tableDoubts(m)
	return m.errs
}
