package file

import "fmt"

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
