package policy

import (
	"github.com/floodgate-go/floodgate/core"
)

// build makes the limiters of a file. What is wrong stands in r.errs: whatever
// can be found out is, before a store hears of it, as a store forgets the
// counters of rules that a limiter no longer has.
func (s *Set) build(r *reader, spec *fileSpec) *version {
	s.rehearse(r, spec)
	if len(r.errs) > 0 || !s.open(r, spec) {
		return nil
	}
	v := s.derive(r, spec)
	if former := s.current.Load(); former != nil && len(r.errs) > 0 {
		// A store of the program's own has refused a limit, after it has taken
		// others: what was in force is bound again.
		s.current.Store(s.derive(r, former.spec))
	}
	return v
}

// rehearse finds out what is wrong with the policies, without the stores.
func (s *Set) rehearse(r *reader, spec *fileSpec) {
	memory, err := core.NewMemory(core.MemoryConfig{})
	if err != nil {
		r.errs = append(r.errs, &Error{File: s.file, Problem: reason(err)})
		return
	}
	defer memory.Close() //nolint:errcheck // never fails
	named := map[string]bool{}
	for _, p := range spec.policies {
		named[p.name] = true
		if _, err := core.New(p.config(spec, memory, s.options)); err != nil {
			r.bad(p.at, reason(err), "")
		}
	}
	for name := range s.wanted {
		if !named[name] {
			r.errs = append(r.errs, &Error{File: s.file, Field: "policies", Problem: "the policy " + name + " is missing", Hint: "the program has mounted it by name"})
		}
	}
}

// derive makes the limiters over the stores.
func (s *Set) derive(r *reader, spec *fileSpec) *version {
	v := &version{spec: spec}
	for _, p := range spec.policies {
		at := place{p.shared, p.name}
		store := core.Store(s.local)
		switch {
		case s.options.store != nil:
			store, at.shared = s.options.store, false
		case p.shared:
			store = s.shared.store
		}
		l, err := s.bind(at, p.config(spec, store, s.options))
		if err != nil {
			r.bad(p.at, reason(err), "")
			continue
		}
		s.limiters[at] = l // bound, even where another policy turns out to be wrong
		v.limiters = append(v.limiters, &limiter{l, p})
	}
	return v
}

// bind makes a limiter. The first one of a place binds its name in the store,
// and those that follow share its counters.
func (s *Set) bind(at place, c core.Config) (*core.Limiter, error) {
	if former := s.limiters[at]; former != nil {
		return former.Derive(c)
	}
	return core.New(c)
}

// open opens the stores, or sees that a changed file keeps to them.
func (s *Set) open(r *reader, spec *fileSpec) bool {
	if former := s.current.Load(); former != nil {
		at := value{}
		if spec.store != nil {
			at = spec.store.at
		}
		if former.spec.store.identity() != spec.store.identity() {
			at.path = "store"
			r.bad(at, "has changed", "another store needs a restart")
		}
		if former.spec.maxKeys != spec.maxKeys {
			r.errs = append(r.errs, &Error{File: s.file, Field: "local.max-keys", Problem: "has changed", Hint: "another number needs a restart"})
		}
		return len(r.errs) == 0
	}
	if s.options.store != nil {
		return true
	}
	memory, err := core.NewMemory(core.MemoryConfig{MaxKeys: spec.maxKeys})
	if err != nil {
		r.errs = append(r.errs, &Error{File: s.file, Field: "local.max-keys", Problem: reason(err)})
		return false
	}
	s.local = memory
	if spec.store != nil {
		s.shared, _ = r.openStore(spec.store, s.options)
	}
	return len(r.errs) == 0
}
