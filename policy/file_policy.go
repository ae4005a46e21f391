package policy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// headerForms are the forms of response headers.
var headerForms = map[string]core.Headers{
	"draft-10": core.HeadersDraft10, "draft-03": core.HeadersDraft03,
	"x-seconds": core.HeadersXSeconds, "x-milliseconds": core.HeadersXMillis, "x-epoch": core.HeadersXEpoch,
}

// policy reads a policy. Its rules stand in rules, or, where there is one, its
// fields stand among the policy's.
func (r *reader) policy(v value, f *fileSpec, o *options) *policySpec {
	p := &policySpec{at: v, headers: core.HeadersOff, shared: f.store != nil}
	var rules value
	rule := ruleSpec{at: v}
	fields := []field{
		{"name", func(v value) { p.name, _ = r.name(v) }},
		{"match", func(v value) { r.match(v, f, &p.match) }},
		{"rules", func(v value) { rules = v }},
		{"counting", func(v value) { r.counting(v, f, p) }},
		{"headers", func(v value) { p.headers = r.headers(v) }},
		{"shadow", func(v value) { p.shadow = r.boolean(v) }},
		{"allow", func(v value) { p.allow = r.prefixes(v) }},
		{"deny", func(v value) { p.deny, p.denyAt = r.prefixes(v), v }},
		{"cost", func(v value) {
			p.cost = r.cost(v, f)
			r.doubtCost(v, p.cost)
		}},
		{"on-denied", func(v value) { r.onDenied(v, &p.denied) }},
	}
	given := r.mapping(v, "a policy", append(fields, r.ruleFields(&rule, f)...)...)
	if given == nil {
		return nil
	}
	defer func() { r.served(p, f.store) }()
	if !has(given, "name") {
		r.bad(v, "the field name is missing", "it names the counters, and stands in logs")
	}
	for _, both := range p.allow {
		if slices.Contains(p.deny, both) {
			r.bad(v, fmt.Sprintf("%v stands in allow and in deny", both), "of two prefixes the longer one decides")
		}
	}
	if !has(given, "rules") {
		rule.name, rule.counters, rule.nameAt = p.name, p.name, given["name"] // which is what clients read in headers
		r.endRule(&rule, given, o)
		p.rules = []ruleSpec{rule}
		return p
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(ruleFieldNames, name) {
			r.bad(given[name], name+": belongs into one of the rules, as there are rules", "")
		}
	}
	for _, item := range r.list(rules, maxRules, "a list of rules") {
		rule := ruleSpec{at: item}
		given := r.mapping(item, "a rule", append([]field{{"name", func(v value) { rule.name, _ = r.name(v) }}}, r.ruleFields(&rule, f)...)...)
		if given == nil {
			continue
		}
		if !has(given, "name") {
			r.bad(item, "the field name is missing", "it names the rule's counters")
		}
		rule.counters, rule.nameAt = p.name+"."+rule.name, given["name"]
		r.endRule(&rule, given, o)
		p.rules = append(p.rules, rule)
	}
	return p
}

// served notes limits that the policy's store cannot count.
func (r *reader) served(p *policySpec, s *storeSpec) {
	if s == nil || !p.shared {
		return
	}
	for _, rule := range p.rules {
		all := rule.limits
		for _, t := range rule.tiers {
			all = append(all, t.limits...)
		}
		for _, l := range all {
			if problem, hint := s.serves(l); problem != "" {
				r.bad(rule.at, problem, hint)
			}
		}
	}
}

func (r *reader) counting(v value, f *fileSpec, p *policySpec) {
	word, ok := r.choice(v, "shared", "local")
	if !ok {
		return
	}
	p.shared = word == "shared"
	if p.shared && f.store == nil {
		r.bad(v, "shared: the file has no store", "write a store before the policies, or counting: local")
	}
}

func (r *reader) headers(v value) core.Headers {
	words := append(slices.Sorted(maps.Keys(headerForms)), "off")
	opened, ok := r.open(v)
	if !ok {
		return core.HeadersOff
	}
	items := []value{v}
	if isList(opened) {
		items = r.list(v, len(words), "a list of header forms")
	}
	var h core.Headers
	for _, item := range items {
		word, ok := r.choice(item, words...)
		switch {
		case !ok:
		case word == "off" && len(items) > 1:
			r.bad(item, "off: cannot stand beside others", "")
		case word == "off":
			return core.HeadersOff
		case h&headerForms[word] != 0:
			r.bad(item, word+": stands twice", "")
		case strings.HasPrefix(word, "x-") && h&(core.HeadersXSeconds|core.HeadersXMillis|core.HeadersXEpoch) != 0:
			r.bad(item, word+": X-RateLimit-Reset can have only one form", "")
		default:
			h |= headerForms[word]
		}
	}
	if h == 0 {
		return core.HeadersOff
	}
	return h
}

// cost reads what a request is worth: a number, or an expression.
func (r *reader) cost(v value, f *fileSpec) *expression {
	opened, ok := r.open(v)
	if !ok {
		return nil
	}
	if isInteger(opened) {
		n, ok := r.integer(v, 0, core.MaxQuota)
		if !ok {
			return nil
		}
		e, _ := compile(fmt.Sprint(n), f.sources)
		return e
	}
	return r.expression(v, f, "a whole number of hits, or an expression that is one", func(e *expression) bool {
		k := e.result.Kind()
		return k == reflect.Int || k == reflect.Int64 || k == reflect.Float64 || k == reflect.Interface
	})
}
