package policy

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// config makes the limiter's configuration of what the file says. Each policy is
// one rule of the limiter, or several.
func (f *fileSpec) config(store core.Store, o *options) core.Config {
	f.byRule, f.index = map[string]*policySpec{}, newIndex(f.policies)
	h := &hooks{fileSpec: f, options: o}
	c := core.Config{Name: f.name, Store: store, Hooks: h, Select: f.choose, Log: o.log}
	for _, p := range f.policies {
		p.first = len(c.Rules)
		c.Rules = append(c.Rules, p.coreRules(f.sources, o)...)
		p.end = len(c.Rules)
		for _, r := range c.Rules[p.first:] {
			f.byRule[r.Name] = p
		}
	}
	return c
}

// choose is the limiter's Select: it returns the rules of the policies that are
// for the request.
func (f *fileSpec) choose(dst []int, r core.Request) ([]int, error) {
	m := remembered(r)
	if f.index != nil {
		var room [64]int
		if found, every := f.index.candidates(room[:0], r); !every {
			for _, i := range found {
				dst = f.policies[i].choose(dst, r, m, f.sources)
			}
			return dst, nil
		}
	}
	for _, p := range f.policies {
		dst = p.choose(dst, r, m, f.sources)
	}
	return dst, nil
}

// choose appends the policy's rules if it is for the request.
func (p *policySpec) choose(dst []int, r core.Request, m *memo, s *sources) []int {
	if m.asks(p.name) && p.verdict(r, s) == matches {
		for i := p.first; i < p.end; i++ {
			dst = append(dst, i)
		}
	}
	return dst
}

// denyRule is the name of the rule that implements a policy's list deny, behind
// the policy's name and a dot.
const denyRule = "deny-list"

func (p *policySpec) denyRule() string { return p.name + "." + denyRule }

// isDenyRule says whether a rule of the policy is the one of its list deny. The name
// alone does not tell: a rule deny with a tier list has it too.
func (p *policySpec) isDenyRule(name string) bool { return len(p.deny) > 0 && name == p.denyRule() }

// coreRules returns the policy's rules.
func (p *policySpec) coreRules(s *sources, o *options) []core.Rule {
	var rules []core.Rule
	if len(p.deny) > 0 {
		rules = append(rules, core.Rule{
			Name: p.denyRule(), Limits: []core.Limit{{Window: time.Second, Algorithm: core.FixedWindow, Aligned: true}},
			Key: func(dst []byte, r core.Request) ([]byte, error) {
				if !p.denies(r, s) {
					return dst, core.SkipRule
				}
				return dst, nil
			},
		})
	}
	for i := range p.rules {
		rules = append(rules, p.rules[i].coreRules(o)...)
	}
	for i := range rules {
		r := &rules[i]
		r.Headers, r.Shadow = p.headers, p.shadow
		if p.cost != nil {
			r.Cost = func(r core.Request) (int64, error) { return p.costOf(r, s) }
		}
	}
	return rules
}

// coreRules returns the rule; of one with tiers, a rule for each.
func (rule *ruleSpec) coreRules(o *options) []core.Rule {
	if len(rule.tiers) == 0 {
		return []core.Rule{{Name: rule.counters, Limits: rule.limits, Key: rule.identify}}
	}
	var rules []core.Rule
	for _, t := range rule.tiers {
		if t.unlimited {
			continue
		}
		rules = append(rules, core.Rule{
			Name: rule.tierName(t.name), Limits: t.limits,
			Key: func(dst []byte, r core.Request) ([]byte, error) {
				name, err := rule.tierOf(r, o)
				if err == nil && name != t.name {
					err = core.SkipRule
				}
				if err != nil {
					return dst, err
				}
				return rule.identify(dst, r)
			},
		})
	}
	return rules
}

func (rule *ruleSpec) tierName(tier string) string { return rule.counters + "-" + tier }

// tierOf returns the tier of a request, one of those that the rule names.
func (rule *ruleSpec) tierOf(r core.Request, o *options) (name string, err error) {
	if rule.tier != nil {
		var buf [64]byte
		text, failed := rule.tier.key(buf[:0], r)
		name, err = string(text), failed
	} else {
		name, err = o.tier(r)
	}
	if err != nil {
		return "", err
	}
	for _, t := range rule.tiers {
		if t.name == name {
			return t.name, nil
		}
	}
	return defaultTier, nil
}

// What a key begins with tells those of a fallback from those of the key
// itself, so that a client cannot have what another one falls back to.
const (
	mark         = '?'
	fallbackMark = "?:"
)

// identify is the rule's [core.KeyFunc].
func (rule *ruleSpec) identify(dst []byte, r core.Request) ([]byte, error) {
	if rule.key == nil {
		return dst, nil
	}
	from := len(dst)
	dst, err := rule.key.key(dst, r)
	if err != nil {
		return dst, err
	}
	if len(dst) > from {
		if rule.fallback != nil && dst[from] == mark {
			dst = append(dst, 0)
			copy(dst[from+1:], dst[from:])
			dst[from] = mark
		}
		return dst, nil
	}
	if rule.fallback != nil {
		begin := len(append(dst, fallbackMark...))
		if dst, err = rule.fallback.key(append(dst, fallbackMark...), r); err != nil || len(dst) > begin {
			return dst, err
		}
		dst = dst[:from]
	}
	switch rule.missing {
	case skip:
		return dst, core.SkipRule
	case reject:
		return dst, fmt.Errorf("%w: there is no %s", core.ErrBadRequest, shorten(rule.key.text))
	default:
		return dst, nil
	}
}

// verdict says whether the policy is for a request.
func (p *policySpec) verdict(r core.Request, s *sources) verdict {
	v := p.match.of(r)
	if (v == matches || v == preflight) && len(p.allow)+len(p.deny) > 0 {
		yes, no := listed(s.addressOf(r), p.allow, p.deny)
		switch {
		case yes && v == matches:
			return allowed
		case no:
			return matches // a preflight is not limited, but refused it is
		}
	}
	return v
}

// denies says that the list deny has the client's address.
func (p *policySpec) denies(r core.Request, s *sources) bool {
	if len(p.deny) == 0 {
		return false
	}
	_, denied := listed(s.addressOf(r), p.allow, p.deny)
	return denied
}

// costOf returns what a request is worth to the policy.
func (p *policySpec) costOf(r core.Request, s *sources) (int64, error) {
	if p.cost == nil || p.denies(r, s) { // what is worth nothing would pass
		return 1, nil
	}
	return p.cost.hits(r)
}

// hooks are those of a file's limiter.
type hooks struct {
	core.DefaultHooks
	*fileSpec
	options *options
}

// ShouldLimit implements [core.Hooks]: each policy says for itself what it limits.
func (h *hooks) ShouldLimit(core.Request) bool { return true }

const statusForbidden = 403

// OnDisallowed implements [core.Hooks].
func (h *hooks) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	denial := core.DefaultDenial(r, d)
	if p := h.byRule[d.Rule]; p != nil && d.Reason == core.OverLimit {
		if p.isDenyRule(d.Rule) {
			denial.Status, denial.Body = statusForbidden, []byte(`{"type":"about:blank","title":"Forbidden","status":403}`)
		} else {
			denial = p.denied.apply(denial)
		}
	}
	if h.options.denied != nil {
		denial = h.options.denied(r, d, denial)
	}
	return denial
}

// apply puts what the file says in the place of what is usual.
func (s *deniedSpec) apply(d core.Denial) core.Denial {
	switch {
	case len(s.body) > 0:
		d.Body = s.body
		d.Header = []core.Header{{Name: "Content-Type", Value: s.contentType}}
	case s.status != 0:
		// The member is the response's status: RFC 9457, section 3.1.2.
		const member = `"status":`
		d.Body = bytes.Replace(d.Body, []byte(member+strconv.Itoa(d.Status)), []byte(member+strconv.Itoa(s.status)), 1)
	}
	if s.status != 0 {
		d.Status = s.status
	}
	d.Header = append(d.Header, s.header...)
	return d
}
