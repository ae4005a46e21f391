package policy

import (
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/file"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// isDenyRule reports whether a rule of the policy implements its lists only and deny. The
// name alone does not tell: the tier list of a rule deny has the same name.
func (p *enforcedPolicy) isDenyRule(name string) bool { return p.Denies() && name == p.DenyRule() }

// errOthers wraps core.SkipRule, so that the log does not say that a rule limits nobody.
var errOthers = fmt.Errorf("the rule is for other requests: %w", core.SkipRule)

// coreRules returns the policy's rules for the limiter.
func (p *enforcedPolicy) coreRules() []core.Rule {
	var rules []core.Rule
	if p.Denies() {
		rules = append(rules, core.Rule{
			Name: p.DenyRule(), Limits: []core.Limit{{Window: time.Second, Algorithm: core.FixedWindow, Aligned: true}},
			Key: func(dst []byte, r core.Request) ([]byte, error) {
				if !p.denies(r) {
					return dst, errOthers
				}
				return dst, nil
			},
		})
	}
	for i := range p.rules {
		rules = append(rules, p.rules[i].coreRules()...)
	}
	for i := range rules {
		r := &rules[i]
		if r.Headers = p.Headers; p.DryRun {
			r.Headers = core.HeadersOff // clients see nothing of a dry run
		}
		if !p.isDenyRule(r.Name) {
			r.MaxWait = p.wait
		}
		if p.Cost != nil {
			r.Cost = func(r core.Request) (int64, error) { return p.costOf(r) }
		}
	}
	return rules
}

// coreRules returns the rule for the limiter, or a rule for each of its tiers.
func (rule enforcedRule) coreRules() []core.Rule {
	var quota func(core.Request, core.Limit) (int64, error)
	if rule.varies() {
		quota = rule.quota()
	}
	if len(rule.Tiers) == 0 {
		return []core.Rule{{Name: rule.Counters, Limits: rule.Limits, Key: rule.counter, Quota: quota}}
	}
	var rules []core.Rule
	for _, t := range rule.Tiers {
		if t.Unlimited {
			continue
		}
		rules = append(rules, core.Rule{
			Name: rule.TierRule(t.Name), Limits: t.Limits,
			Key: func(dst []byte, r core.Request) ([]byte, error) {
				name, err := rule.tierOf(r)
				if err == nil && name != t.Name {
					err = errOthers
				}
				if err != nil {
					return dst, err
				}
				return rule.counter(dst, r)
			},
			Quota: quota,
		})
	}
	return rules
}

// tierOf returns the tier of a request: one of the tiers that the rule names.
func (rule enforcedRule) tierOf(r core.Request) (name string, err error) {
	if rule.Tier != nil {
		var buf [64]byte
		text, failed := rule.Tier.Key(buf[:0], r)
		name, err = string(text), failed
	} else {
		name, err = rule.options.tier(r)
	}
	if err != nil {
		return "", err
	}
	for _, t := range rule.Tiers {
		if t.Name == name {
			return t.Name, nil
		}
	}
	return file.DefaultTier, nil
}

// Keys of a fallback begin with fallbackMark, and no other key does, so that a
// client cannot choose a key that is the fallback of another client.
const (
	mark         = '?'
	fallbackMark = "?:"
)

// identify appends the key of a request, as a [core.KeyFunc] does.
func (rule enforcedRule) identify(dst []byte, r core.Request) ([]byte, error) {
	if rule.Key == nil {
		return dst, nil
	}
	from := len(dst)
	dst, err := rule.Key.Key(dst, r)
	if err != nil {
		return dst, err
	}
	if len(dst) > from {
		if rule.Fallback != nil && dst[from] == mark {
			dst = append(dst, 0)
			copy(dst[from+1:], dst[from:])
			dst[from] = mark
		}
		return dst, nil
	}
	if rule.Fallback != nil {
		begin := len(append(dst, fallbackMark...))
		if dst, err = rule.Fallback.Key(append(dst, fallbackMark...), r); err != nil || len(dst) > begin {
			return dst, err
		}
		dst = dst[:from]
	}
	switch rule.Missing {
	case file.Skip:
		return dst, core.SkipRule
	case file.Reject:
		if lacks := rule.Key.Lacks(); lacks != "" {
			return dst, &core.BadRequestError{Detail: lacks}
		}
		return dst, fmt.Errorf("%w: there is no %s", core.ErrBadRequest, words.Shorten(rule.Key.String()))
	default:
		return dst, nil
	}
}
