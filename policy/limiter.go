package policy

import (
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/file"
	"github.com/floodgate-go/floodgate/policy/internal/paths"
)

// enforcedFile is a file whose policies are rules of a limiter. Those with dry-run are
// rules of a second one.
type enforcedFile struct {
	*file.Spec
	policies []*enforcedPolicy
	byRule   map[string]*enforcedPolicy // by the names of the limiters' rules
	dry      *core.Limiter              // of the dry run; nil: no policy has one
	index    *paths.Index               // nil if there are few policies
	options  *options
}

// enforcedPolicy is one policy of a file.
type enforcedPolicy struct {
	*file.Policy
	rules   []enforcedRule
	sources *expression.Sources
	wait    time.Duration // how long a request may wait for its turn; 0: none waits

	first, end int // the policy's part of the limiter's rules
}

// enforcedRule is one rule of a policy.
type enforcedRule struct {
	*file.Rule
	options *options
	table   *table // nil: none
}

// enforce prepares the policies of a file for a limiter.
func enforce(spec *file.Spec, o *options, tables map[tableID]*wanted) *enforcedFile {
	f := &enforcedFile{Spec: spec, options: o}
	var patterns [][]paths.Pattern
	for _, said := range spec.Policies {
		p := &enforcedPolicy{Policy: said, sources: spec.Sources}
		if !o.impatient && !said.DryRun {
			p.wait = said.Wait
		}
		for i := range said.Rules {
			rule := enforcedRule{Rule: &said.Rules[i], options: o}
			if rule.Quotas != nil {
				rule.table = tables[idOf(rule.Quotas)].table
			}
			p.rules = append(p.rules, rule)
		}
		f.policies, patterns = append(f.policies, p), append(patterns, said.Match.Paths)
	}
	f.index = paths.NewIndex(patterns)
	return f
}

// dryRunSuffix ends the name of the limiter of the dry run, and maxDryName is the
// longest name of a file that has one.
const (
	dryRunSuffix = "-dry-run"
	maxDryName   = 64 - len(dryRunSuffix)
)

// configs returns the configurations of the two limiters: that of the policies that
// can deny, and that of the dry run. Each policy is one rule of its limiter or several.
func (f *enforcedFile) configs(store core.Store) (enforced, dry core.Config) {
	f.byRule = map[string]*enforcedPolicy{}
	enforced = core.Config{
		Name: f.Name, Store: store, Hooks: &hooks{enforcedFile: f}, Log: f.options.log, Observer: f.options.observer,
		MaxWaiters: f.Local.MaxWaitingOfKey, MaxWaitersTotal: f.Local.MaxWaiting,
	}
	dry = enforced
	dry.Name, dry.DryRun = f.Name+dryRunSuffix, true
	enforced.RulesFor = func(dst []int, r core.Request) ([]int, error) { return f.choose(dst, r, false) }
	dry.RulesFor = func(dst []int, r core.Request) ([]int, error) { return f.choose(dst, r, true) }
	for _, p := range f.policies {
		c := &enforced
		if p.DryRun {
			c = &dry
		}
		p.first = len(c.Rules)
		c.Rules = append(c.Rules, p.coreRules()...)
		p.end = len(c.Rules)
		for _, r := range c.Rules[p.first:] {
			f.byRule[r.Name] = p
		}
	}
	return enforced, dry
}

// choose is the Select of a limiter: it returns the rules of its policies that apply
// to the request.
func (f *enforcedFile) choose(dst []int, r core.Request, dryRun bool) ([]int, error) {
	m := remembered(r)
	if f.index != nil {
		var room [64]int
		if found, every := f.index.Candidates(room[:0], pathOf(r)); !every {
			for _, i := range found {
				dst = f.policies[i].choose(dst, r, m, dryRun)
			}
			return dst, nil
		}
	}
	for _, p := range f.policies {
		dst = p.choose(dst, r, m, dryRun)
	}
	return dst, nil
}

// choose appends the policy's rules if they are of the limiter and the policy applies to the request.
func (p *enforcedPolicy) choose(dst []int, r core.Request, m *memo, dryRun bool) []int {
	if p.DryRun == dryRun && m.asks(p.Name) && p.verdict(r) == matches {
		for i := p.first; i < p.end; i++ {
			dst = append(dst, i)
		}
	}
	return dst
}
