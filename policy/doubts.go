package policy

import (
	"fmt"
	"slices"
)

// Warnings returns what is legal in the file that is in force and probably a
// mistake: tiers, costs and keys that a client chooses, keys by a route that may not be
// known. They are also logged, once each.
func (s *Set) Warnings() []*Error { return slices.Clone(s.current.Load().doubts) }

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

// words name what an expression reads.
var words = map[string]string{"header": "header", "query": "query parameter", "cookie": "cookie", "form": "form field", "json": "JSON field"}

// written returns which values an expression reads that a client writes as it
// likes, such as header; "" if none.
func (e *expression) written() string {
	if e == nil {
		return ""
	}
	for _, name := range e.values {
		if slices.Contains(namedNames, name) {
			return words[name]
		}
	}
	return ""
}

// bound says that a client cannot choose the value as it likes.
func (e *expression) bound() bool { return e == nil || e.written() == "" }

// doubtRule notes what a client can choose, and what may not be known.
func (r *reader) doubtRule(rule *ruleSpec, given map[string]value) {
	if name := rule.tier.written(); name != "" {
		r.doubt(given["tier"], fmt.Sprintf("%q: a client writes the %s itself, and so chooses its tier", shorten(rule.tier.text), name),
			"have the program say the tier with policy.WithTier, or see that a proxy sets the value for every request")
	}
	for _, name := range []string{"key", "fallback"} {
		e := rule.key
		if name == "fallback" {
			e = rule.fallback
		}
		if e != nil && slices.Contains(e.values, "route") {
			r.doubt(given[name], fmt.Sprintf("%q: the route is known only to policies that are mounted after routing", shorten(e.text)),
				"mounted before it, all requests share one counter: write match.paths, or mount the policy on the routes")
		}
	}
}

// doubtCost notes a cost that a client can choose.
func (r *reader) doubtCost(v value, cost *expression) {
	if name := cost.written(); name != "" {
		r.doubt(v, fmt.Sprintf("%q: a client writes the %s itself, and so chooses what its request costs", shorten(cost.text), name),
			"see that the cost cannot be less than what the request is worth")
	}
}

// unbound returns a warning for each key that a client chooses, if no other rule
// for the same requests limits a client that chooses another key every time.
func (r *reader) unbound(f *fileSpec) []*Error {
	var all []*Error
	for _, p := range f.policies {
		if slices.ContainsFunc(f.policies, func(q *policySpec) bool { return q.binds(p) }) {
			continue
		}
		for i := range p.rules {
			rule := &p.rules[i]
			if rule.key.bound() || p.shadow {
				continue
			}
			before := len(r.doubts)
			r.doubt(rule.keyAt, fmt.Sprintf("%q: a client that changes the %s gets another counter each time, and no other rule limits it", shorten(rule.key.text), rule.key.written()),
				"add a policy with key: ip for the same requests")
			all = append(all, r.doubts[before:]...)
			r.doubts = r.doubts[:before]
		}
	}
	return all
}

// binds says that the policy limits what clients send to another policy, by
// something that they cannot choose.
func (p *policySpec) binds(other *policySpec) bool {
	if p.shadow {
		return false
	}
	if p != other && (p.match.when != nil || len(p.match.methods) > 0 && !slices.Equal(p.match.methods, other.match.methods) ||
		len(p.match.paths) > 0 && p.match.patterns() != other.match.patterns()) {
		return false
	}
	return slices.ContainsFunc(p.rules, func(rule ruleSpec) bool {
		return rule.key.bound() && rule.tier.written() == ""
	})
}
