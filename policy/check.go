package policy

import (
	"fmt"
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/file"
)

var (
	_ core.Checker = (*Set)(nil)
	_ core.Checker = (*only)(nil)
)

// Check implements [core.Checker].
func (s *Set) Check(r core.Request) core.Decision {
	return s.check(r, nil)
}

func (s *Set) check(r core.Request, only []string) core.Decision {
	q := &request{Request: r, memo: memo{only: only}}
	d := s.limiter.Check(q)
	if dry := s.current.Load().dry; dry != nil && d.Allowed {
		s.tryDry(dry, q, d)
	}
	return d
}

// tryDry lets the policies of the dry run decide on a request that the others allow. d is
// the decision of the others.
func (s *Set) tryDry(dry *core.Limiter, q *request, d core.Decision) {
	done := false
	defer func() {
		if !done && d.NeedsOutcome() { // a hook has panicked: nobody else will settle the decision
			s.Settle(q, d, core.Outcome{Panicked: true})
		}
	}()
	dry.Check(q)
	done = true
}

// Deny implements [core.Checker].
func (s *Set) Deny(r core.Request, d core.Decision) core.Denial { return s.limiter.Deny(r, d) }

// Settle implements [core.Checker].
func (s *Set) Settle(r core.Request, d core.Decision, o core.Outcome) { s.limiter.Settle(r, d, o) }

// Only returns a checker that applies only the named policies, for a program
// that mounts policies on some of its routes. It follows changes of the file.
// From then on, a changed file that lacks one of these policies is rejected.
func (s *Set) Only(names ...string) (core.Checker, error) {
	s.change.Lock()
	defer s.change.Unlock()
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: policy: Only: no names", core.ErrConfig)
	}
	spec := s.current.Load()
	for _, name := range names {
		if spec.policy(name) == nil {
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

// Schema returns the JSON Schema (2020-12) of policy files, for editors that
// complete and check them. It knows what a file looks like; [Parse] checks what is
// in its expressions, limits and addresses, too.
func Schema() []byte { return slices.Clone(file.Schema()) }

// Reference returns a description of all fields of policy files in Markdown: the
// type of each, its default, an example and what it means.
func Reference() string { return file.Reference() }
