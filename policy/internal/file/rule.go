package file

import (
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
)

// Rule is one rule of a file.
type Rule struct {
	at       value
	Name     string
	Counters string                 // the name of the limiter's rule, or what those of its tiers begin with
	Key      *expression.Expression // nil: one counter for all
	Fallback *expression.Expression // nil: none
	Missing  Missing
	Limits   []core.Limit           // without tiers
	Tier     *expression.Expression // nil: policy.WithTier says it
	Tiers    []Tier
	Quotas   map[string]*Quotas // of single keys
	InFlight *int64             // the most requests of a key that run at a time; nil: any number
	keyAt    value
	nameAt   value
}

// Missing is the treatment of a request without the key of a rule.
type Missing uint8

// The values of the field missing.
const (
	OwnBucket Missing = iota // it shares a counter with the others
	Skip                     // the rule does not apply to it
	Reject                   // it is denied with 400
)

// maxRules is the most rules of a policy, and the most tiers of a rule.
const maxRules = 32

// ruleMapping returns the table of one of several rules.
func ruleMapping() *mapping[Rule] {
	return &mapping[Rule]{
		name: "rule", want: "a rule", about: "An entry of `rules`.",
		fields: append([]field[Rule]{{
			name: "name", required: true, hint: "it names the rule's counters", example: "day",
			about: "The rule's name, which follows the policy's name in decisions and in the names of counters.",
			value: set(name(), func(rule *Rule) *string { return &rule.Name }),
		}}, ruleFields()...),
		together: "`fallback`, `missing` and `quotas` require `key`. Exactly one of `limits` and `tiers` is given, or `in-flight`, or both. `tier` requires `tiers`.",
		check: func(m filled, rule *Rule) {
			rule.nameAt = m.given["name"]
			m.r.endRule(m, rule)
		},
	}
}

// ruleFields returns the fields of a rule that may stand in a policy.
func ruleFields() []field[Rule] {
	return []field[Rule]{
		{
			name: "key", without: "all requests share one counter", example: "user",
			about: "The counter that a request belongs to: requests with the same value share a counter.",
			value: set(compiled("an expression such as ip or header[\"x-api-key\"]", nil), func(rule *Rule) **expression.Expression { return &rule.Key }),
		}, {
			name: "fallback", example: "ip",
			about: "The key of requests for which `key` is empty.",
			value: set(compiled("an expression such as ip", nil), func(rule *Rule) **expression.Expression { return &rule.Fallback }),
		}, {
			name: "missing", initial: "own-bucket", example: "reject",
			about: "How requests without a key are treated: they share a counter (`own-bucket`), the rule does not apply (`skip`), or they are denied with status 400 (`reject`).",
			value: set(choice(word[Missing]{"own-bucket", OwnBucket}, word[Missing]{"skip", Skip}, word[Missing]{"reject", Reject}), func(rule *Rule) *Missing { return &rule.Missing }),
		}, {
			name: "limits", example: "10/s, 1000/h sliding_window",
			about: "The limits of each key; all of them must allow a request.",
			value: set(limits(), func(rule *Rule) *[]core.Limit { return &rule.Limits }),
		}, {
			name: "in-flight", without: "any number", example: "3",
			about: "The most requests of each key that run at a time, beside `limits` or alone.",
			value: then(whole[int64](0, inflight.MaxSlots), func(r *reader, v value, rule *Rule, n int64) {
				if rule.InFlight = &n; n == 0 {
					r.doubt(v, "0: denies all requests", deniesAllHint)
				}
			}),
		}, {
			name: "tier", without: "what the program says with `policy.WithTier`", example: "user",
			about: "The tier that a request belongs to.",
			value: set(compiled("an expression such as user", nil), func(rule *Rule) **expression.Expression { return &rule.Tier }),
		}, {
			name: "tiers", example: "{default: 100/m, paid: [1000/m, 20000/d], staff: unlimited}",
			about: "The limits of each tier; requests of any other tier belong to the tier `default`.",
			value: set(tiers(), func(rule *Rule) *[]Tier { return &rule.Tiers }),
		}, {
			name: "quotas", without: "all keys have the quotas in `limits`", example: "{ann: 500, bob: unlimited}",
			about: "The quotas of single keys, in place of those in `limits`.",
			value: then(quotas(), func(_ *reader, _ value, rule *Rule, got map[string]*Quotas) { rule.Quotas = got }),
		},
	}
}

func ruleFieldNames() (names []string) {
	for _, f := range ruleFields() {
		names = append(names, f.name)
	}
	return names
}

// endRule checks what a rule's fields are together.
func (r *reader) endRule(m filled, rule *Rule) {
	const noKey, noKeyHint = "there is no key that could be missing", "without a key all requests share one counter"
	m.needs("fallback", "key", noKey, noKeyHint)
	m.needs("missing", "key", noKey, noKeyHint)
	m.needs("quotas", "key", "there is no key that could have quotas", noKeyHint)
	missing := "the field limits is missing"
	if m.has("in-flight") {
		missing = ""
	}
	if m.one([]string{"limits", "tiers"}, "", missing, "want "+limitsWant) {
		m.needs("tier", "tiers", "there are no tiers to choose from", "")
	}
	rule.keyAt = m.given["key"]
	r.doubtRule(rule, m.given)
	r.endQuotas(rule, m.given["quotas"])
	if rule.Name == denyRule {
		r.bad(rule.at, "nothing can be called "+denyRule, "it is the name of the rule that denies the addresses of only and deny")
	}
	if m.has("tiers") && !m.has("limits") && !m.has("tier") && !r.options.Tier {
		r.bad(m.given["tiers"], "nothing says which tier a request is of", "write the expression tier, or have the program give policy.WithTier")
	}
}
