package policy

import (
	"fmt"
	"strings"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/file"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// build puts a file in force, or adds to m what is wrong with it. All mistakes that
// can be found without the store are found first: a store forgets the counters of
// rules that a limiter no longer has.
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
		s.places.isLocal = f.isLocal()
	}
	var err error
	if len(dry.Rules) > 0 {
		err = applied(&s.dry, dry)
		f.dry = s.dry
	}
	if err == nil {
		err = applied(&s.limiter, enforced)
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
	memory, err := core.NewMemory(core.MemoryConfig{})
	if err != nil {
		m.field("", words.Reason(err), "")
		return
	}
	defer memory.Close() //nolint:errcheck // never fails
	for i, p := range f.policies {
		c := core.Config{Name: fmt.Sprint("policy-", i), Store: memory, Rules: p.coreRules()}
		if _, err := core.New(c); err != nil {
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
	whole, dry := f.configs(memory)
	if len(dry.Rules) > 0 && len(f.Name) > maxDryName {
		m.field("name", fmt.Sprintf("%q: has %d characters, and a file with dry-run: true at most %d", f.Name, len(f.Name), maxDryName), "the dry run counts under this name and "+dryRunSuffix)
		return
	}
	whole.Rules = append(whole.Rules, dry.Rules...) // in one limiter, as names are unique in the file
	whole.RulesFor, whole.Observer = nil, nil       // the file is not in force yet
	if _, err := core.New(whole); err != nil {      // such as names that two policies have
		m.field("policies", words.Reason(err), "")
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

// isLocal returns a function that returns whether a rule of the limiter counts in
// this process. Rules of local policies do, unless the program has given a store
// for all policies. The lists only and deny always do: they need no counter, and
// must deny while a store is gone.
func (f *enforcedFile) isLocal() func(rule string) bool {
	return func(rule string) bool {
		p := f.byRule[rule]
		return p != nil && (p.isDenyRule(rule) || !p.Shared && f.options.store == nil)
	}
}

// open opens the stores. If they are open, it checks that a changed file does not
// change them.
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
		s.shared, _ = openStore(m, f.Store, s.options)
	}
	return !m.found()
}
