package file

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// mayLackKey reports whether there can be a request without a key.
func (rule *Rule) mayLackKey() bool {
	return rule.Key != nil && rule.Key.MayBeEmpty() && (rule.Fallback == nil || rule.Fallback.MayBeEmpty())
}

// doubtRule notes a key that is a constant or that requests may lack, a tier that a client can choose and a
// route that may be unknown. A missing key is no error: its requests share a counter,
// so that no client escapes the limit, and a file that was taken before still is.
func (r *reader) doubtRule(rule *Rule, given map[string]value) {
	if name := rule.Tier.Written(); name != "" {
		r.doubt(given["tier"], fmt.Sprintf("%q: a client writes the %s itself, and so chooses its tier", words.Shorten(rule.Tier.String()), name),
			"have the program say the tier with policy.WithTier, or read it from a header that your proxy sets for every request, and name the header in trusted-headers")
	}
	if rule.Key != nil && rule.Key.Constant() {
		r.doubt(given["key"], fmt.Sprintf("%q: is the same for all requests, which share one counter", words.Shorten(rule.Key.String())),
			`leave key out if they shall; to count by address write key: ip, by a header key: header["name"]`)
	} else if !has(given, "missing") && rule.mayLackKey() && !rule.Key.Reads("route") {
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

// largeState is the size of a state of which the store in the process holds less than 100,000.
const largeState = 256 << 20 / 100_000

// doubtMemory notes a limit of which a key takes much memory in the process.
func (r *reader) doubtMemory(at value, l core.Limit) {
	most := int64(0) // bytes, as core.MemoryConfig has them
	switch {
	case l.Algorithm == core.BucketedWindow && l.Precision > 0:
		most = 4*int64(l.Window/l.Precision) + 24
	case l.Algorithm == core.SlidingLog:
		most = 8*l.Quota + 8
	}
	most = 1 << bits.Len64(uint64(most)) // memory comes in blocks
	if r.spec.Local.MaxKeys == core.DefaultMaxKeys && most > largeState {
		r.doubt(at, fmt.Sprintf("%v: a key takes up to %d KiB, so that at most %d keys are held at a time", l, most>>10, max(256<<20/most, 8192)),
			"write a longer precision or another algorithm, or say with local: {max-keys: ...} how many keys the memory is for")
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
