package policy

import (
	"fmt"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// build puts what a file says in force. What is wrong is in r.errs: whatever can
// be found out is, before a store hears of it, as a store forgets the counters of
// rules that a limiter no longer has.
func (s *Set) build(r *reader, spec *fileSpec) {
	s.rehearse(r, spec)
	if len(r.errs) > 0 || !s.open(r, spec) {
		return
	}
	config := spec.config(s.store(), s.options)
	if s.places != nil {
		s.places.isLocal = spec.isLocal(s.options)
	}
	var err error
	if s.limiter == nil {
		s.limiter, err = core.New(config)
	} else {
		err = s.limiter.Reconfigure(config)
	}
	if err != nil {
		e := &Error{File: s.file, Field: "policies", Problem: reason(err)}
		if strings.Contains(e.Problem, "Name: ") {
			e.Field, e.Hint = "name", "two files that count in one store need different names: write the field name in one of them"
		}
		r.errs = append(r.errs, e)
	}
}

// rehearse finds out what is wrong with the policies, without the stores.
func (s *Set) rehearse(r *reader, spec *fileSpec) {
	memory, err := core.NewMemory(core.MemoryConfig{})
	if err != nil {
		r.errs = append(r.errs, &Error{File: s.file, Problem: reason(err)})
		return
	}
	defer memory.Close() //nolint:errcheck // never fails
	for i, p := range spec.policies {
		c := core.Config{Name: fmt.Sprint("policy-", i), Store: memory, Rules: p.coreRules(spec.sources, s.options)}
		if _, err := core.New(c); err != nil {
			r.bad(p.at, reason(err), "")
		}
	}
	for name := range s.wanted {
		if spec.policy(name) == nil {
			r.errs = append(r.errs, &Error{File: s.file, Field: "policies", Problem: "the policy " + name + " is missing", Hint: "the program has mounted it by name"})
		}
	}
	if len(r.errs) > 0 {
		return
	}
	if _, err := core.New(spec.config(memory, s.options)); err != nil { // names that two policies have
		r.errs = append(r.errs, &Error{File: s.file, Field: "policies", Problem: reason(err)})
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

// isLocal returns a function that says which of the limiter's rules count in
// this process: those of local policies, unless the program has given a store for
// all, and all lists of denied addresses, which need no counter and must deny
// while a store is gone.
func (f *fileSpec) isLocal(o *options) func(rule string) bool {
	return func(rule string) bool {
		p := f.byRule[rule]
		return p != nil && (p.isDenyRule(rule) || !p.shared && o.store == nil)
	}
}

// open opens the stores, or sees that a changed file keeps to them.
func (s *Set) open(r *reader, spec *fileSpec) bool {
	if former := s.current.Load(); former != nil {
		if former.name != spec.name {
			r.errs = append(r.errs, &Error{File: s.file, Field: "name", Problem: "has changed", Hint: "another name needs a restart: it names the counters"})
		}
		at := value{}
		if spec.store != nil {
			at = spec.store.at
		}
		if former.store.identity() != spec.store.identity() {
			at.path = "store"
			r.bad(at, "has changed", "another store needs a restart")
		}
		if former.maxKeys != spec.maxKeys {
			r.errs = append(r.errs, &Error{File: s.file, Field: "local.max-keys", Problem: "has changed", Hint: "another number needs a restart"})
		}
		return len(r.errs) == 0
	}
	memory, err := core.NewMemory(core.MemoryConfig{MaxKeys: spec.maxKeys})
	if err != nil {
		r.errs = append(r.errs, &Error{File: s.file, Field: "local.max-keys", Problem: reason(err)})
		return false
	}
	s.local = memory
	if spec.store != nil && s.options.store == nil {
		s.shared, _ = r.openStore(spec.store, s.options)
	}
	return len(r.errs) == 0
}
