package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/internal/regularfile"
	"github.com/floodgate-go/floodgate/policy/internal/file"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// Set is the policies of a file in force. [Load], [Parse] and [Watch] return one. It is a
// [core.Checker] that applies all policies: every adapter's Middleware takes it. Its methods may be
// called concurrently.
//
// All policies of a file are rules of one limiter, which decides on a request in one step: all
// policies that apply must allow it, or it is charged to none. If some policies count in the file's
// store and some in this process, the request is charged in the process first, and refunded there
// if the store denies it.
//
// Policies with dry-run: true are rules of a second limiter, see [Set.DryRun]. It decides on each
// request that the first one allows, and denies nothing.
type Set struct {
	file    string // its name, as it was given
	options *options
	current atomic.Pointer[enforcedFile] // what is in force
	limiter *core.Limiter                // of the policies that can deny; never replaced
	dry     *core.Limiter                // of the dry run; nil until a file has one

	change  sync.Mutex // one change at a time
	shared  opened     // the zero value if the file has no store
	local   *core.Memory
	places  *places                       // over shared and local; nil if there is one store
	slots   map[slotsOf]*inflight.Limiter // of the policies with in-flight, also of former files
	wanted  map[string]bool               // the names given to Only: every later file must have them
	closed  bool
	unwatch context.CancelFunc // nil: the file is not watched
}

var (
	_ core.Checker = (*Set)(nil)
	_ core.Checker = (*only)(nil)

	_ interface{ Guarantees() core.Guarantees } = (*Set)(nil) // adapters look for it
)

// Load reads the policies of a file. The error is the operating system's, or has all mistakes of
// the file: see [Errors]. It wraps [core.ErrConfig] if an option is nil or its store cannot be
// used.
func Load(path string, opts ...Option) (*Set, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return Parse(path, text, opts...)
}

// Parse reads policies from text; errors have name as the file's name.
func Parse(name string, text []byte, opts ...Option) (*Set, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	s := &Set{file: name, options: o, wanted: map[string]bool{}, slots: map[slotsOf]*inflight.Limiter{}}
	if err := s.Replace(text); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// readFile reads at most one byte more than a file may have.
func readFile(path string) ([]byte, error) { return regularfile.Read(path, file.MaxBytes) }

// Replace puts another text of the file in force, at one moment for all later requests. A counter
// keeps its count if its policy keeps its name, tier and counting, and its limit keeps its
// algorithm, window, precision, alignment and time zone. After an error no policy that can deny has
// changed. The fields name, store and local cannot change while a program runs. A Set of [Watch]
// keeps the text until the file changes.
func (s *Set) Replace(text []byte) error {
	s.change.Lock()
	defer s.change.Unlock()
	if s.closed {
		return fmt.Errorf("policy: %s: %w", s.file, core.ErrClosed)
	}
	m := &mistakes{file: s.file}
	spec, problems := file.Read(text, file.Options{User: s.options.user, Tier: s.options.tier != nil})
	for _, p := range problems {
		m.add(p.Place, p.Text, p.Hint)
	}
	if !m.found() {
		f := enforce(spec, s.options)
		if s.build(m, f); !m.found() {
			s.current.Store(f)
			s.warn()
			return nil
		}
	}
	return m.join()
}

// build puts a file in force, or adds to m what is wrong with it. All mistakes that can be found
// without the store are found first: a store forgets the counters of rules that a limiter no longer
// has.
func (s *Set) build(m *mistakes, f *enforcedFile) {
	s.try(m, f)
	if m.found() || !s.open(m, f) {
		return
	}
	enforced, dry := f.configs(s.store())
	if len(enforced.Rules) == 0 { // a limiter has a rule, and no request has this one
		enforced.Rules = []core.Rule{{Name: "none", Limits: []core.Limit{core.PerSecond(1)}}}
	}
	if s.places != nil {
		s.places.isLocal = f.isLocal
	}
	var err error
	if len(dry.Rules) > 0 {
		err = applied(&s.dry, dry)
		f.dry = s.dry
	}
	if err == nil {
		err = applied(&s.limiter, enforced)
	}
	if err == nil {
		err = s.buildSlots(f)
	}
	if err != nil {
		field, hint := "policies", ""
		if strings.Contains(words.Reason(err), "Name: ") {
			field, hint = "name", "two files that count in one store need different names: write the field name in one of them"
		}
		m.field(field, words.Reason(err), hint)
	}
}

// applied puts a configuration in force: in a new limiter, or in the one that there is.
func applied(l **core.Limiter, c core.Config) (err error) {
	if *l != nil {
		return (*l).Reconfigure(c)
	}
	*l, err = core.New(c)
	return err
}

// try finds what is wrong with the policies without asking a store.
func (s *Set) try(m *mistakes, f *enforcedFile) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	defer memory.Close() //nolint:errcheck // never fails
	for i, p := range f.policies {
		rules := p.coreRules()
		if len(rules) == 0 { // the policy has the field in-flight only
			continue
		}
		if _, err := core.New(core.Config{Name: fmt.Sprint("try-", i), Rules: rules, Store: memory}); err != nil {
			m.add(p.At(), words.Reason(err), "")
		}
	}
	for name := range s.wanted {
		if f.policy(name) == nil {
			m.field("policies", "the policy "+name+" is missing", "the program has mounted it by name")
		}
	}
	if m.found() {
		return
	}
	_, dry := f.configs(memory)
	s.trySlots(m, f)
	if len(dry.Rules) > 0 && len(f.Name) > maxDryName {
		m.field("name", fmt.Sprintf("%q: has %d characters, and a file with dry-run: true at most %d", f.Name, len(f.Name), maxDryName), "the dry run counts under this name and "+dryRunSuffix)
	}
}

// store returns the store in which the limiter counts.
func (s *Set) store() core.Store {
	shared := s.shared.store
	if s.options.store != nil {
		shared = s.options.store
	}
	if shared == nil {
		return s.local
	}
	if s.places == nil {
		s.places = &places{local: s.local, shared: shared}
	}
	return s.places
}

// isLocal reports whether a rule of the limiter counts in this process. Rules of local policies do,
// unless the program has given a store for all policies. The lists only and deny always do: they
// need no counter, and must deny while a store is gone.
func (f *enforcedFile) isLocal(rule string) bool {
	p := f.byRule[rule]
	return p != nil && (p.isDenyRule(rule) || !p.Shared && f.options.store == nil)
}

// open opens the stores. If they are open, it checks that a changed file does not change them.
func (s *Set) open(m *mistakes, f *enforcedFile) bool {
	if former := s.current.Load(); former != nil {
		if former.Name != f.Name {
			m.field("name", "has changed", "another name needs a restart: it names the counters")
		}
		if former.Store.Identity() != f.Store.Identity() {
			at := file.Place{}
			if f.Store != nil {
				at = f.Store.At()
			}
			at.Field = "store"
			m.add(at, "has changed", "another store needs a restart")
		}
		if former.Local.MaxKeys != f.Local.MaxKeys {
			m.field("local.max-keys", "has changed", "another number needs a restart")
		}
		return !m.found()
	}
	most := f.Local.MaxKeys
	if most == core.DefaultMaxKeys {
		most = 0 // or as many as fit into 256 MB
	}
	memory, err := core.NewMemory(core.MemoryConfig{MaxKeys: most})
	if err != nil {
		m.field("local.max-keys", words.Reason(err), "")
		return false
	}
	s.local = memory
	if f.Store != nil && s.options.store == nil {
		s.shared = openStore(m, f.Store, s.options)
	}
	return !m.found()
}

// Close stops watching the file and closes the stores that the Set has opened. Later decisions
// fail. Closing again does nothing. Close does not wait for a running function of [OnReload].
func (s *Set) Close() error {
	s.change.Lock()
	closed := s.closed
	s.closed = true
	s.change.Unlock()
	if closed {
		return nil
	}
	if s.unwatch != nil {
		s.unwatch()
	}
	var errs []error
	for _, l := range s.slots {
		errs = append(errs, l.Close())
	}
	if s.shared.close != nil {
		errs = append(errs, s.shared.close())
	}
	if s.local != nil {
		errs = append(errs, s.local.Close())
	}
	return errors.Join(errs...)
}

// Check implements [core.Checker]. A request takes a slot of each policy with in-flight that
// applies, then its hits, and gives the slots back if it is denied. The decision is that of the
// limits, or of the field in-flight if it denies the request or no limit applies.
func (s *Set) Check(r core.Request) core.Decision { return s.check(r, nil) }

func (s *Set) check(r core.Request, only []string) core.Decision {
	q := &request{Request: r, only: only}
	var held heldSlots
	defer func() { held.release(q) }() // a hook or a key function may panic
	for _, slot := range s.current.Load().slots {
		if !slot.applies(q) {
			continue
		}
		d := slot.limiter.Check(q)
		if !d.Allowed {
			return d
		}
		if d.NeedsOutcome() { // it has a slot
			held = append(held, heldSlot{slot.limiter, d})
		}
	}
	d := s.limiter.Check(q)
	if dry := s.current.Load().dry; dry != nil && d.Allowed {
		dry.Check(q)
	}
	if !d.Allowed || len(held) == 0 {
		return d
	}
	if d.Reason == core.ReasonNoRule {
		d = held[len(held)-1].decision // it says how long the request has waited
	}
	d.SetNote(held)
	held = nil // Settle releases them
	return d
}

// Deny implements [core.Checker].
func (s *Set) Deny(r core.Request, d core.Decision) core.Denial { return s.limiter.Deny(r, d) }

// Settle implements [core.Checker].
func (s *Set) Settle(r core.Request, d core.Decision, o core.Outcome) {
	held, _ := d.Note().(heldSlots)
	held.release(r)
	s.limiter.Settle(r, d, o) // does nothing if the decision is that of a slot
}

// Only returns a checker that applies only the named policies, for a program that mounts policies
// on some of its routes. It follows changes of the file. From then on, a changed file that lacks
// one of these policies is rejected.
func (s *Set) Only(names ...string) (core.Checker, error) {
	s.change.Lock()
	defer s.change.Unlock()
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: policy: Only: no names", core.ErrConfig)
	}
	for _, name := range names {
		if s.current.Load().policy(name) == nil {
			return nil, fmt.Errorf("%w: policy: Only: %q: %s has no such policy", core.ErrConfig, name, s.file)
		}
	}
	for _, name := range names {
		s.wanted[name] = true
	}
	return &only{Set: s, names: slices.Clone(names)}, nil
}

type only struct {
	*Set
	names []string
}

func (o *only) Check(r core.Request) core.Decision {
	return o.check(r, o.names)
}

// Limiter returns the limiter of the policies that can deny; it stays the same when the file
// changes. Its rules are named as [Set.Policies] says. Its Take, Peek and Reset ignore the match of
// a policy.
func (s *Set) Limiter() *core.Limiter { return s.limiter }

// DryRun returns the limiter of the policies with dry-run: true, nil if the file in force has none.
// Its name is that of the file, followed by "-dry-run".
func (s *Set) DryRun() *core.Limiter { return s.current.Load().dry }

// Guarantees returns what all stores of the policies promise. The adapters of Fiber ask for it:
// with Prefork, they warn of policies that count in each process.
func (s *Set) Guarantees() core.Guarantees { return s.limiter.Guarantees() }

// Policy describes a policy that is in force.
type Policy struct {
	// Name is the policy's name.
	Name string
	// DryRun reports whether the policy has dry-run: true and so denies nothing. Shared reports
	// whether it counts in the file's store.
	DryRun, Shared bool
	// Wait is the longest time that a request waits if the policy would deny it. 0: no request
	// waits. A dry run makes no request wait.
	Wait time.Duration
	// Rules are the policy's rules of the limiter: one, or one for each tier that is limited. A
	// policy with the field in-flight only has none.
	Rules []PolicyRule
}

// PolicyRule describes a rule of a policy.
type PolicyRule struct {
	// Name is the name of the rule in [Set.Limiter], in decisions and in the store: the policy's
	// name, followed by a dash and the tier's name if the policy has tiers.
	Name string
	// Limits are the limits of each key.
	Limits []core.Limit

	quotas map[string]file.Quotas // of single keys
}

// Hit returns the hit of a key for Take, Peek or Reset of [Set.Limiter], with the quotas that the
// file has for the key.
func (r PolicyRule) Hit(key string) core.Hit {
	hit := core.Hit{Rule: r.Name, Key: key}
	if own, has := r.quotas[key]; has {
		for _, l := range r.Limits {
			q, found := own.Of(&l)
			if !found {
				q = l.Quota
			}
			hit.Quotas = append(hit.Quotas, q)
		}
	}
	return hit
}

// Policies returns the policies that are in force, in the order of the file.
func (s *Set) Policies() []Policy {
	spec := s.current.Load()
	all := make([]Policy, len(spec.policies))
	for i, p := range spec.policies {
		all[i] = Policy{Name: p.Name, DryRun: p.DryRun, Shared: p.Shared, Wait: p.Wait}
		for _, r := range p.coreRules() {
			if !p.isDenyRule(r.Name) {
				all[i].Rules = append(all[i].Rules, PolicyRule{r.Name, slices.Clone(r.Limits), p.Quotas})
			}
		}
	}
	return all
}

// PolicyOf returns the name of the policy that a rule of [Set.Limiter] belongs to, such as
// core.Decision.Rule in an audit log; "" if there is none in force.
func (s *Set) PolicyOf(rule string) string {
	if p := s.current.Load().byRule[rule]; p != nil {
		return p.Name
	}
	return ""
}

// Warnings returns parts of the file in force that are legal and probably mistakes: tiers, costs
// and keys that a client can choose, and keys that a request may lack if the file does not set the
// field missing. They are logged when the file is put in force.
func (s *Set) Warnings() []*Error {
	m := &mistakes{file: s.file}
	for _, d := range s.current.Load().Doubts {
		m.add(d.Place, d.Text, d.Hint)
	}
	return m.errs
}

// warn logs the warnings.
func (s *Set) warn() {
	for _, e := range s.Warnings() {
		s.options.log.Warn("policy file: probably a mistake", "file", e.File, "line", e.Line, "field", e.Field, "problem", e.Problem, "hint", e.Hint)
	}
}
