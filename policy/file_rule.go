package policy

import (
	"fmt"
	"slices"

	"github.com/floodgate-go/floodgate/core"
)

// ruleSpec is what a file says of one rule.
type ruleSpec struct {
	at       value
	name     string
	counters string      // the name of the limiter's rule, or what those of its tiers begin with
	key      *expression // nil: one counter for all
	fallback *expression // nil: none
	missing  missing
	limits   []core.Limit // without tiers
	tier     *expression  // nil: policy.WithTier says it
	tiers    []tierSpec
	keyAt    value
	nameAt   value
}

// tierSpec are the limits of one tier.
type tierSpec struct {
	at        value
	name      string
	unlimited bool
	limits    []core.Limit
}

// missing says what becomes of a request without the key.
type missing uint8

const (
	ownBucket missing = iota
	skip
	reject
)

var missings = []string{ownBucket: "own-bucket", skip: "skip", reject: "reject"}

// maxRules is the most rules of a policy, and the most tiers of a rule.
const maxRules = 32

const defaultTier = "default"

var ruleFieldNames = []string{"key", "fallback", "missing", "limits", "tier", "tiers"}

func (r *reader) ruleFields(rule *ruleSpec, f *fileSpec) []field {
	any := func(*expression) bool { return true }
	return []field{
		{"key", func(v value) { rule.key = r.expression(v, f, "an expression such as ip or header[\"x-api-key\"]", any) }},
		{"fallback", func(v value) { rule.fallback = r.expression(v, f, "an expression such as ip", any) }},
		{"missing", func(v value) {
			word, _ := r.choice(v, missings...)
			rule.missing = missing(max(0, slices.Index(missings, word)))
		}},
		{"limits", func(v value) { rule.limits = r.limits(v) }},
		{"tier", func(v value) { rule.tier = r.expression(v, f, "an expression such as user", any) }},
		{"tiers", func(v value) { rule.tiers = r.tiers(v) }},
	}
}

// endRule checks what a rule's fields are together.
func (r *reader) endRule(rule *ruleSpec, given map[string]value, o *options) {
	rule.keyAt = given["key"]
	r.doubtRule(rule, given)
	if rule.name == denyRule {
		r.bad(rule.at, "nothing can be called "+denyRule, "it is the name of what the list deny makes")
	}
	for _, name := range []string{"fallback", "missing"} {
		if has(given, name) && !has(given, "key") {
			r.bad(given[name], "there is no key that could be missing", "without a key all requests share one counter")
		}
	}
	switch {
	case has(given, "limits") && has(given, "tiers"):
		r.bad(given["tiers"], "limits and tiers exclude each other", "")
	case !has(given, "limits") && !has(given, "tiers"):
		r.bad(rule.at, "the field limits is missing", "want "+limitsWant)
	case has(given, "tier") && !has(given, "tiers"):
		r.bad(given["tier"], "there are no tiers to choose from", "")
	case has(given, "tiers") && !has(given, "tier") && o.tier == nil:
		r.bad(given["tiers"], "nothing says which tier a request is of", "write the expression tier, or have the program give policy.WithTier")
	}
}

// tiers reads the limits of each tier.
func (r *reader) tiers(v value) []tierSpec {
	pairs, ok := r.pairs(v, "a mapping of tiers and their limits")
	if !ok {
		return nil
	}
	var tiers []tierSpec
	found := false
	for _, p := range pairs {
		if _, ok := r.name(value{p.key, p.value.path}); !ok {
			continue
		}
		t := tierSpec{at: value{p.key, p.value.path}, name: p.name}
		found = found || p.name == defaultTier
		if opened, ok := r.open(p.value); ok && kindText(opened.node) == "unlimited" {
			t.unlimited = true
		} else if ok {
			t.limits = r.limits(p.value)
		}
		tiers = append(tiers, t)
	}
	if !found {
		r.bad(v, "the tier default is missing", "it is for requests of no tier that is named here; it may be unlimited")
	}
	if len(tiers) > maxRules {
		r.bad(v, fmt.Sprintf("%d tiers: at most %d", len(tiers), maxRules), "")
	}
	return tiers
}

// maxName is the longest name of a limiter's rule.
const maxName = 64

// distinct notes rules whose counters would have the same name, and names that
// are too long. A tier has counters of its own, and so has the list deny.
func (r *reader) distinct(policies []*policySpec) {
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
		if policyNames[p.name] {
			continue // which has been noted
		}
		policyNames[p.name] = true
		if len(p.deny) > 0 {
			counters[p.denyRule()] = p.denyAt
		}
		rules := map[string]value{}
		for i := range p.rules {
			rule := &p.rules[i]
			const hint = "names tell counters apart: those of a rule are named after its policy and the rule"
			if rule.name == "" || !take(rules, rule.name, rule.nameAt, "names tell counters apart") {
				continue
			}
			if len(rule.tiers) == 0 {
				take(counters, rule.counters, rule.nameAt, hint)
			}
			for _, t := range rule.tiers {
				if !t.unlimited {
					take(counters, rule.tierName(t.name), t.at, "the counters of a tier are named after the rule and the tier: rename one of them")
				}
			}
		}
	}
}
