package file

import (
	"fmt"
	"slices"

	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// mayLackKey reports whether there can be a request without a key.
func (rule *Rule) mayLackKey() bool {
	return rule.Key != nil && rule.Key.MayBeEmpty() && (rule.Fallback == nil || rule.Fallback.MayBeEmpty())
}

// doubtRule notes a key that requests may lack, a tier that a client can choose and a
// route that may be unknown. A missing key is no error: its requests share a counter,
// so that no client escapes the limit, and a file that was taken before still is.
func (r *reader) doubtRule(rule *Rule, given map[string]value) {
	if name := rule.Tier.Written(); name != "" {
		r.doubt(given["tier"], fmt.Sprintf("%q: a client writes the %s itself, and so chooses its tier", words.Shorten(rule.Tier.String()), name),
			"have the program say the tier with policy.WithTier, or read it from a header that your proxy sets for every request, and name the header in trusted-headers")
	}
	if !has(given, "missing") && rule.mayLackKey() && !rule.Key.Reads("route") {
		r.doubt(given["key"], fmt.Sprintf("%q: all requests without it share one counter", words.Shorten(rule.Key.String())),
			"write fallback: ip to count them by address, or say what happens: missing: own-bucket if they shall share a counter, missing: reject to deny them with 400, missing: skip not to limit them")
	}
	for _, name := range []string{"key", "fallback"} {
		e := rule.Key
		if name == "fallback" {
			e = rule.Fallback
		}
		if e != nil && e.Reads("route") {
			r.doubt(given[name], fmt.Sprintf("%q: the route is known only to policies that are mounted after routing", words.Shorten(e.String())),
				"mounted before it, all requests share one counter: write match.paths, or mount the policy on the routes")
		}
		if e != nil && e.Reads("param") {
			r.doubt(given[name], fmt.Sprintf("%q: the parameters of a route are known only to policies that are mounted after routing", words.Shorten(e.String())),
				"mounted before it, the value is empty for all requests: mount the policy on the routes, or on the router if it routes first")
		}
	}
}

// doubtCost notes a cost that a client can choose.
func (r *reader) doubtCost(v value, cost *expression.Expression) {
	if name := cost.Written(); name != "" {
		r.doubt(v, fmt.Sprintf("%q: a client writes the %s itself, and so chooses what its request costs", words.Shorten(cost.String()), name),
			"see that the cost cannot be less than what the request is worth")
	}
}

// unbound returns a warning for each key that a client can choose, unless another
// rule for the same requests limits a client that changes its key every time.
func (r *reader) unbound(f *Spec) []Problem {
	var all []Problem
	for _, p := range f.Policies {
		if slices.ContainsFunc(f.Policies, func(q *Policy) bool { return q.binds(p) }) {
			continue
		}
		for i := range p.Rules {
			rule := &p.Rules[i]
			if bound(rule.Key) || p.DryRun {
				continue
			}
			before := len(r.doubts)
			r.doubt(rule.keyAt, fmt.Sprintf("%q: a client that changes the %s gets another counter each time, and no other rule limits it", words.Shorten(rule.Key.String()), rule.Key.Written()),
				"add a policy with key: ip for the same requests, or read a header that your proxy sets for every request, and name it in trusted-headers")
			all = append(all, r.doubts[before:]...)
			r.doubts = r.doubts[:before]
		}
	}
	return all
}

// bound reports whether a client cannot choose the value.
func bound(e *expression.Expression) bool { return e.Written() == "" }

// binds reports whether the policy limits the requests of another policy by a key
// that clients cannot choose.
func (p *Policy) binds(other *Policy) bool {
	if p.DryRun {
		return false
	}
	if p != other && (p.Match.When != nil || len(p.Match.Methods) > 0 && !slices.Equal(p.Match.Methods, other.Match.Methods) ||
		len(p.Match.Paths) > 0 && p.Match.Patterns() != other.Match.Patterns()) {
		return false
	}
	return slices.ContainsFunc(p.Rules, func(rule Rule) bool {
		return bound(rule.Key) && rule.Tier.Written() == ""
	})
}

// denyRule is the name of the rule that implements a policy's lists only and deny, behind
// the policy's name and a dot.
const denyRule = "deny-list"

// DenyRule returns the name of the rule that implements the policy's lists only
// and deny.
func (p *Policy) DenyRule() string { return p.Name + "." + denyRule }

// TierRule returns the name of the rule that has the limits of a tier.
func (rule *Rule) TierRule(tier string) string { return rule.Counters + "-" + tier }

// maxName is the longest name of a limiter's rule.
const maxName = 64

// distinct notes rules whose counters would have the same name, and names that are
// too long. The lists only and deny of a policy are one rule
// of the limiter, and so is each tier.
func (r *reader) distinct(policies []*Policy) {
	policyNames, counters := map[string]bool{}, map[string]value{}
	take := func(taken map[string]value, name string, at value, hint string) bool {
		other, twice := taken[name]
		if twice {
			r.bad(at, fmt.Sprintf("the name %s is taken by %s in line %d", name, other.path, begin(other.node).Position.Line), hint)
			return false
		}
		taken[name] = at
		if len(name) > maxName {
			r.bad(at, fmt.Sprintf("the name %s has %d characters: at most %d", name, len(name), maxName), "it is made of the names of the policy, the rule and the tier: choose shorter ones")
		}
		return true
	}
	for _, p := range policies {
		if policyNames[p.Name] {
			continue // which has been noted
		}
		policyNames[p.Name] = true
		if p.Denies() {
			counters[p.DenyRule()] = p.denyAt
		}
		rules := map[string]value{}
		for i := range p.Rules {
			rule := &p.Rules[i]
			const hint = "names tell counters apart: those of a rule are named after its policy and the rule"
			if rule.Name == "" || !take(rules, rule.Name, rule.nameAt, "names tell counters apart") {
				continue
			}
			if len(rule.Tiers) == 0 {
				take(counters, rule.Counters, rule.nameAt, hint)
			}
			for _, t := range rule.Tiers {
				if !t.Unlimited {
					take(counters, rule.TierRule(t.Name), t.at, "the counters of a tier are named after the rule and the tier: rename one of them")
				}
			}
		}
	}
}
