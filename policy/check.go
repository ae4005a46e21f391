package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
)

var (
	_ core.Rechecker = (*Set)(nil)
	_ core.Rechecker = (*only)(nil)
)

// Check implements [core.Checker].
func (s *Set) Check(r core.Request) core.Decision { return s.current.Load().check(r, nil, nil) }

// Recheck implements [core.Rechecker]: policies that have counted the request do
// not count it again.
func (s *Set) Recheck(r core.Request, before core.Decision) core.Decision {
	return s.current.Load().check(r, nil, countedBy(before))
}

// Deny implements [core.Checker].
func (s *Set) Deny(r core.Request, d core.Decision) core.Denial {
	// Any limiter will do: the decision knows the hooks that are to be asked.
	return s.current.Load().limiters[0].Deny(r, d)
}

// Settle implements [core.Checker]. Nothing in a file depends on what becomes
// of a request that was let through.
func (s *Set) Settle(core.Request, core.Decision, core.Outcome) {}

// Mount implements [core.Checker].
func (s *Set) Mount() { s.mounts.Add(1) }

// Mounts implements [core.Checker].
func (s *Set) Mounts() int { return int(s.mounts.Load()) }

// Only returns a checker that applies the named policies and no other: for a
// program that mounts policies on routes of its own. It follows changes of the
// file; one that lacks such a policy is refused from now on.
func (s *Set) Only(names ...string) (core.Checker, error) {
	s.change.Lock()
	defer s.change.Unlock()
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: policy: Only: no names", core.ErrConfig)
	}
	v := s.current.Load()
	for _, name := range names {
		if v.limiter(name) == nil {
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
	names  []string
	mounts atomic.Int32
}

func (o *only) Check(r core.Request) core.Decision { return o.current.Load().check(r, o.names, nil) }
func (o *only) Recheck(r core.Request, before core.Decision) core.Decision {
	return o.current.Load().check(r, o.names, countedBy(before))
}
func (o *only) Mount()      { o.mounts.Add(1) }
func (o *only) Mounts() int { return int(o.mounts.Load()) }

// counted is the Note of a decision: the names of the policies that have counted
// the request. A decision of one policy alone has none.
type counted struct {
	names []string
	room  [4]string
}

// countedBy returns the policies that have counted a request.
func countedBy(d core.Decision) []string {
	if all, ok := d.Note.(*counted); ok {
		return all.names
	}
	if d.Reason == core.WithinLimits {
		return []string{d.Limiter}
	}
	return nil
}

// check decides on a request, by the named policies; nil: by all. Those that have
// counted it before are left out.
func (v *version) check(r core.Request, names, before []string) core.Decision {
	q := &request{Request: r}
	var room [4]*limiter
	enforced := room[:0]
	var shadows []*limiter
	for _, l := range v.limiters {
		if names != nil && !slices.Contains(names, l.spec.name) || slices.Contains(before, l.spec.name) || l.spec.verdict(q, v.spec.sources) != matches {
			continue
		}
		if l.spec.shadow {
			shadows = append(shadows, l)
		} else {
			enforced = append(enforced, l)
		}
	}
	if len(enforced) == 1 && len(before)+len(shadows) == 0 {
		return enforced[0].check(q) // its name is enough of a note
	}
	d := core.Decision{Allowed: true, Reason: core.NoRule}
	if len(before)+len(shadows)+len(enforced) == 0 {
		return d
	}
	note := &counted{}
	note.names = append(note.room[:0], before...)
	for _, l := range shadows {
		if l.check(q).Reason != core.NoRule {
			note.names = append(note.names, l.spec.name)
		}
	}
	switch len(enforced) {
	case 0:
	case 1:
		if d = enforced[0].check(q); d.Reason == core.WithinLimits {
			note.names = append(note.names, enforced[0].spec.name)
		}
	default:
		d = together(q, enforced, note)
	}
	d.Note = note
	return d
}

// check is for a request that the policy is known to be for.
func (l *limiter) check(q *request) core.Decision {
	q.memo.matched = l.spec
	return l.Check(q)
}

// preview is Check without a charge.
func (l *limiter) preview(q *request) core.Decision {
	q.memo.matched = l.spec
	return l.Preview(q)
}

// asked is a limiter and what it has said.
type asked struct {
	*limiter
	decision core.Decision
}

// together has all limiters admit the request, or charges none. It asks each
// without charging first, and then takes from those that deny the request first,
// the one with the longest wait before the others: a denied request is charged to
// nobody at any time, unless another request comes in between. Then what has been
// charged is given back.
func together(q *request, limiters []*limiter, note *counted) core.Decision {
	var room [4]asked
	all := append(room[:0], asked{limiter: limiters[0], decision: core.Decision{Allowed: true}})
	denied := false
	for _, l := range limiters[1:] {
		a := asked{l, l.preview(q)}
		denied = denied || !a.decision.Allowed
		all = append(all, a)
	}
	if denied { // if not, the first is asked by charging it
		all[0].decision = limiters[0].preview(q)
	}
	slices.SortStableFunc(all, func(a, b asked) int {
		if a.decision.Allowed != b.decision.Allowed {
			if a.decision.Allowed {
				return 1
			}
			return -1
		}
		return cmp.Compare(b.decision.RetryAfter, a.decision.RetryAfter)
	})
	decisions := make([]core.Decision, 0, len(all))
	for i, a := range all {
		d := a.check(q)
		if !d.Allowed {
			return refused(q, d, all[:i], decisions, all[i+1:])
		}
		decisions = append(decisions, d)
	}
	for i, a := range all {
		if decisions[i].Reason == core.WithinLimits {
			note.names = append(note.names, a.spec.name)
		}
	}
	return core.Together(decisions...)
}

// refused makes the decision on a request that one limiter denies after some have
// been charged, and gives that back. Others have said that they would deny it too.
func refused(q *request, d core.Decision, charged []asked, decisions []core.Decision, rest []asked) core.Decision {
	ctx := context.WithoutCancel(q.Context()) // a client that hangs up is given back all the same
	for i, a := range charged {
		if err := a.Refund(ctx, decisions[i]); err != nil {
			d.Err = errors.Join(d.Err, err)
		}
	}
	refusals := []core.Decision{d}
	for _, a := range rest {
		if !a.decision.Allowed {
			refusals = append(refusals, a.decision)
		}
	}
	return core.Together(refusals...)
}
