package file

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
)

// Policy is one policy of a file.
type Policy struct {
	at        value
	Name      string
	Match     Match
	Shared    bool
	Headers   core.Headers
	DryRun    bool
	dryRunAt  value
	Wait      time.Duration  // how long a request may wait for its turn; 0: none waits
	Exempt    []netip.Prefix // addresses that the policy does not limit
	Only      []netip.Prefix // none: all; requests of all other addresses are denied
	Deny      []netip.Prefix
	denyAt    value // of the first of the fields only and deny
	headersAt value
	Cost      *expression.Expression // nil: 1
	Denied    Denied
	Rules     []Rule

	rule Rule // whose fields are among the policy's
}

// newPolicy returns an empty policy.
func newPolicy(v value) *Policy {
	return &Policy{at: v, Headers: core.HeadersOff, rule: Rule{at: v}}
}

// policyMapping returns the table of a policy. The rules of a policy are in rules,
// or, if there is one, its fields are among the policy's.
func policyMapping() *mapping[*Policy] {
	rules := list(ruleMapping().kind(func(v value) Rule { return Rule{at: v} }), maxRules, "a list of rules", nil)
	fields := []field[*Policy]{
		{
			name: "name", required: true, hint: "it names the counters, and stands in logs", example: "by-client",
			about: "The policy's name in logs, in decisions and in the names of its counters.",
			value: set(name(), func(p **Policy) *string { return &(*p).Name }),
		}, {
			name: "match", without: "all requests", example: "{methods: [POST], paths: [/api/**]}",
			about: "The requests that the policy applies to.",
			value: set(matchMapping().kind(func(value) Match { return Match{} }), func(p **Policy) *Match { return &(*p).Match }),
		}, {
			name: "rules", example: "[{name: second, limits: 10/s}, {name: day, key: ip, limits: 1000/d}]",
			about: "Several rules, which are decided together.",
			value: set(rules, func(p **Policy) *[]Rule { return &(*p).Rules }),
		}, {
			name: "counting", without: "`shared` if the file has a store, else `local`", example: "local",
			about: "Whether the policy counts in the store for all processes together (`shared`) or in each process (`local`).",
			value: then(choice(word[bool]{"shared", true}, word[bool]{"local", false}), (*reader).counting),
		}, {
			name: "headers", initial: "off", example: "[draft-10, x-seconds]",
			about: "The rate limit headers of responses.",
			value: then(headers(), func(_ *reader, v value, p **Policy, got core.Headers) { (*p).Headers, (*p).headersAt = got, v }),
		}, {
			name: "dry-run", initial: "false", example: "true",
			about: "If true, the policy decides, counts and reports each request that the other policies allow, but denies nothing.",
			value: then(boolean(), func(_ *reader, v value, p **Policy, got bool) { (*p).DryRun, (*p).dryRunAt = got, v }),
		}, {
			name: "wait", without: "no request waits", example: "2s",
			about: "The longest time that a request waits for its turn if the policy would deny it now; a request that would wait longer is denied at once.",
			value: set(duration("a length of time such as 500ms or 6s"), func(p **Policy) *time.Duration { return &(*p).Wait }),
		}, {
			name: "exempt", example: "[10.0.0.0/8]",
			about: "Client addresses that the policy does not limit; if `deny` has the address too, the longest prefix decides.",
			value: set(prefixes(), func(p **Policy) *[]netip.Prefix { return &(*p).Exempt }),
		}, {
			name: "only", without: "all addresses", example: "[10.0.0.0/8, 192.168.0.0/16]",
			about: "The only client addresses that may send the requests of `match`; all others are denied with status 403, also if `exempt` has them.",
			value: set(prefixes(), func(p **Policy) *[]netip.Prefix { return &(*p).Only }),
		}, {
			name: "deny", example: "[203.0.113.0/24, '2001:db8::/32']",
			about: "Client addresses that are denied with status 403.",
			value: set(prefixes(), func(p **Policy) *[]netip.Prefix { return &(*p).Deny }),
		}, {
			name: "cost", initial: "1", example: "len(query[\"ids\"])",
			about: "The number of hits that a request costs.",
			value: then(cost(), func(r *reader, v value, p **Policy, got *expression.Expression) {
				(*p).Cost = got
				r.doubtCost(v, got)
			}),
		}, {
			name: "on-denied", without: "429 and a problem document", example: "{status: 503, body: Try again later.}",
			about: "The response that a denied client gets.",
			value: set(deniedMapping().kind(func(value) Denied { return Denied{} }), func(p **Policy) *Denied { return &(*p).Denied }),
		},
	}
	return &mapping[*Policy]{
		name: "policy", want: "a policy", about: "An entry of `policies`. The fields of a [rule](#rule) may stand in the policy itself if it has only one.",
		fields:   append(fields, within(ruleFields(), func(p **Policy) *Rule { return &(*p).rule })...),
		together: "With `rules`, the policy itself has no field of a [rule](#rule) but `name`.",
		check:    func(m filled, p **Policy) { m.r.endPolicy(m, *p) },
	}
}

// counting reads where a policy counts.
func (r *reader) counting(v value, p **Policy, shared bool) {
	if (*p).Shared = shared; shared && r.spec.Store == nil {
		r.bad(v, "shared: the file has no store", "write a store before the policies, or counting: local")
	}
}

// endPolicy checks what a policy's fields are together.
func (r *reader) endPolicy(m filled, p *Policy) {
	if !m.has("counting") {
		p.Shared = r.spec.Store != nil
	}
	r.endLists(m, p)
	if m.has("rules") {
		m.excludes(ruleFieldNames(), "stands beside rules", "write it in one of the rules")
		for i := range p.Rules {
			p.Rules[i].Counters = p.Name + "." + p.Rules[i].Name
		}
	} else {
		p.rule.Name, p.rule.Counters, p.rule.nameAt = p.Name, p.Name, m.given["name"] // which is what clients read in headers
		r.endRule(m, &p.rule)
		p.Rules = []Rule{p.rule}
	}
	r.served(p)
}

// served notes limits that the policy's store cannot count, and those that have no dry run.
func (r *reader) served(p *Policy) {
	for _, rule := range p.Rules {
		if rule.InFlight != nil && p.DryRun {
			r.bad(p.dryRunAt, "true: in-flight has no dry run", "leave out in-flight or dry-run")
		}
		if rule.InFlight != nil && p.Shared && r.spec.Store != nil && r.spec.Store.Redis == nil {
			r.bad(rule.at, "in-flight: only a store in Redis keeps slots", "count in Redis, or write counting: local")
		}
		all := rule.Limits
		for _, t := range rule.Tiers {
			all = append(all, t.Limits...)
		}
		for _, l := range all {
			if r.spec.Store == nil || !p.Shared {
				continue
			}
			if problem, hint := r.spec.Store.serves(l); problem != "" {
				r.bad(rule.at, problem, hint)
			}
		}
	}
}

// cost is what a request is worth: a number, or an expression.
func cost() kind[*expression.Expression] {
	number := whole[int64](0, core.MaxQuota)
	e := compiled("a whole number of hits, or an expression that is one", (*expression.Expression).MayBeNumber)
	return kind[*expression.Expression]{oneOf(strings.Join([]string{number.words, e.words}, ", or "), number.shape, e.shape), func(r *reader, v value) (*expression.Expression, bool) {
		opened, ok := r.open(v)
		if !ok {
			return nil, false
		}
		if !isInteger(opened) {
			return e.read(r, v)
		}
		n, ok := number.read(r, v)
		if !ok {
			return nil, false
		}
		constant, _ := expression.Compile(fmt.Sprint(n), r.spec.Sources)
		return constant, true
	}}
}
