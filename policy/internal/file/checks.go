package file

import (
	"fmt"
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// doubtKey notes a tier that a client can choose, and a key that requests may lack. A missing key
// is no error: its requests share a counter, so that no client escapes the limit.
func (r *reader) doubtKey(m mapping, p *Policy) {
	if name := p.Tier.Written(); name != "" {
		r.doubt(m.given["tier"], fmt.Sprintf("%q: a client writes the %s itself, and so chooses its tier", words.Shorten(p.Tier.String()), name),
			"have the program say the tier with policy.WithTier, or read it from a header that your proxy sets for every request, and name the header in trusted-headers")
	}
	if p.Key.MayBeEmpty() && (p.Fallback == nil || p.Fallback.MayBeEmpty()) && !m.has("missing") {
		r.doubt(m.given["key"], fmt.Sprintf("%q: all requests without it share one counter", words.Shorten(p.Key.String())),
			"write fallback: ip to count them by address, or say what happens: missing: own-bucket if they shall share a counter, missing: reject to deny them with 400, missing: skip not to limit them")
	}
}

// doubtCost notes a cost that a client can choose.
func (r *reader) doubtCost(v value, cost *expression.Expression) {
	if name := cost.Written(); name != "" {
		r.doubt(v, fmt.Sprintf("%q: a client writes the %s itself, and so chooses what its request costs", words.Shorten(cost.String()), name),
			"see that the cost cannot be less than what the request is worth")
	}
}

// doubtUnbound notes each key that a client can choose, unless another policy for the same requests
// limits a client that changes its key every time.
func (r *reader) doubtUnbound(policies []*Policy) {
	for _, p := range policies {
		binds := func(q *Policy) bool { return q.binds(p) }
		if name := p.Key.Written(); name != "" && !p.DryRun && !slices.ContainsFunc(policies, binds) {
			r.doubt(p.keyAt, fmt.Sprintf("%q: a client that changes the %s gets another counter each time, and no other policy limits it", words.Shorten(p.Key.String()), name),
				"add a policy with key: ip for the same requests, or read a header that your proxy sets for every request, and name it in trusted-headers")
		}
	}
}

// binds reports whether the policy limits the requests of another policy by a key that clients
// cannot choose.
func (p *Policy) binds(other *Policy) bool {
	m, of := &p.Match, &other.Match
	return !p.DryRun && p.Key.Written() == "" && p.Tier.Written() == "" && m.When == nil &&
		(len(m.Methods) == 0 || slices.Equal(m.Methods, of.Methods)) && (len(m.Paths) == 0 || m.Patterns() == of.Patterns())
}

// DenyRule returns the name of the rule that implements the policy's lists only and deny.
func (p *Policy) DenyRule() string { return p.Name + ".deny-list" }

// TierRule returns the name of the rule that has the limits of a tier.
func (p *Policy) TierRule(tier string) string { return p.Name + "-" + tier }

// distinct notes rules of the limiter that would have the same name. Each policy is a rule, and so
// is each of its tiers, and its lists only and deny are one.
func (r *reader) distinct(policies []*Policy) {
	taken := map[string]value{}
	take := func(name string, at value, hint string) {
		if other, twice := taken[name]; twice {
			r.bad(at, fmt.Sprintf("the name %s is taken by %s in line %d", name, other.path, other.place().Line), hint)
		}
		taken[name] = at
	}
	names := map[string]value{}
	for _, p := range policies {
		if other, twice := names[p.Name]; twice {
			r.bad(p.at, fmt.Sprintf("the name %s stands twice, in line %d too", p.Name, other.place().Line), "names tell counters apart")
			continue
		}
		names[p.Name] = p.at
		if p.HasDenyList() {
			taken[p.DenyRule()] = p.denyAt
		}
		if len(p.Tiers) == 0 {
			take(p.Name, p.nameAt, "names tell counters apart: those of a tier are named after its policy and the tier")
		}
		for _, t := range p.Tiers {
			if !t.Unlimited {
				take(p.TierRule(t.Name), t.at, "the counters of a tier are named after the policy and the tier: rename one of them")
			}
		}
	}
	if len(taken) > core.MaxRules {
		r.bad(policies[0].at, fmt.Sprintf("%d policies and tiers: at most %d", len(taken), core.MaxRules), "")
	}
}
