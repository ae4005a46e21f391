package policy

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// limiter is a policy at work.
type limiter struct {
	*core.Limiter
	spec *policySpec
}

// denyRule is the name of the rule that refuses what the list deny names.
const denyRule = "deny-list"

// config makes the limiter's configuration of what the file says.
func (p *policySpec) config(f *fileSpec, store core.Store, o *options) core.Config {
	h := &hooks{policySpec: p, sources: f.sources, options: o}
	c := core.Config{Name: p.name, Store: store, Hooks: h, Headers: p.headers, Log: o.log, Rehearsal: p.shadow}
	if p.shadow {
		c.Headers = core.HeadersOff // clients see nothing of a rehearsal
	}
	if len(p.deny) > 0 {
		c.Rules = append(c.Rules, core.Rule{
			Name: denyRule, Limits: []core.Limit{{Window: time.Second, Algorithm: core.FixedWindow, Aligned: true}},
			Key: func(dst []byte, r core.Request) ([]byte, error) {
				if !h.denies(r) {
					return dst, core.SkipRule
				}
				return dst, nil
			},
		})
	}
	for i := range p.rules {
		c.Rules = append(c.Rules, p.rules[i].coreRules(o)...)
	}
	return c
}

// coreRules returns the rule; of one with tiers, a rule for each.
func (rule *ruleSpec) coreRules(o *options) []core.Rule {
	if len(rule.tiers) == 0 {
		return []core.Rule{{Name: rule.name, Limits: rule.limits, Key: rule.identify}}
	}
	var rules []core.Rule
	for _, t := range rule.tiers {
		if t.unlimited {
			continue
		}
		rules = append(rules, core.Rule{
			Name: rule.name + "-" + t.name, Limits: t.limits,
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

// hooks are a policy's.
type hooks struct {
	core.DefaultHooks
	*policySpec
	sources *sources
	options *options
}

// ShouldLimit implements [core.Hooks].
func (h *hooks) ShouldLimit(r core.Request) bool {
	if m := remembered(r); m != nil && m.matched == h.policySpec {
		return true
	}
	return h.verdict(r, h.sources) == matches
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

func (h *hooks) denies(r core.Request) bool {
	if len(h.deny) == 0 {
		return false
	}
	_, denied := listed(h.sources.addressOf(r), h.allow, h.deny)
	return denied
}

// Cost implements [core.Hooks].
func (h *hooks) Cost(r core.Request) (int64, error) {
	if h.cost == nil || h.denies(r) { // what is worth nothing would pass
		return 1, nil
	}
	return h.cost.hits(r)
}

const statusForbidden = 403

// OnDisallowed implements [core.Hooks].
func (h *hooks) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	denial := core.DefaultDenial(r, d)
	switch {
	case d.Reason == core.OverLimit && d.Rule == denyRule:
		denial.Status, denial.Body = statusForbidden, []byte(`{"type":"about:blank","title":"Forbidden","status":403}`)
	case d.Reason == core.OverLimit:
		denial = h.denied.apply(denial)
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
