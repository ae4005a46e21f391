package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Explanation says what the policies of a file are for a request, one entry for
// each policy, in the order of the file.
type Explanation []PolicyExplanation

// PolicyExplanation says what one policy is for a request.
type PolicyExplanation struct {
	Policy string
	// Applies says that the policy is for the request, and Why what makes it so
	// or not.
	Applies bool
	Why     string
	// Shadow says that the policy only rehearses, and Shared that it counts in
	// the file's store.
	Shadow, Shared bool
	// Denied says that the list deny has the client's address.
	Denied bool
	// Cost is what the request is worth.
	Cost int64
	// Err is what is wrong with the request; nil if nothing is.
	Err   error
	Rules []RuleExplanation
}

// RuleExplanation says what one rule of a policy is for a request.
type RuleExplanation struct {
	Rule string
	// Tier is the tier of the request; "" where the rule has none.
	Tier string
	// Applies says that the rule limits the request, and Why why it does not.
	Applies bool
	Why     string
	// Key names the counter; "" is that of all requests without a key.
	Key string
	// Limits are the limits that apply to the key, without any where the tier
	// is unlimited.
	Limits []core.Limit
}

// Explain says what the policies are for a request. It asks no store, and
// charges nothing.
func (s *Set) Explain(r core.Request) Explanation {
	spec := s.current.Load()
	q := &request{Request: r}
	var all Explanation
	for _, p := range spec.policies {
		e := PolicyExplanation{Policy: p.name, Shadow: p.shadow, Shared: p.shared, Cost: 1}
		verdict := p.verdict(q, spec.sources)
		e.Applies, e.Why = verdict == matches, p.match.why(verdict)
		if e.Applies {
			e.Denied = p.denies(q, spec.sources)
			e.Cost, e.Err = p.costOf(q, spec.sources)
			for i := range p.rules {
				e.Rules = append(e.Rules, s.explainRule(&p.rules[i], q, &e))
			}
		}
		all = append(all, e)
	}
	return all
}

func (s *Set) explainRule(rule *ruleSpec, q *request, of *PolicyExplanation) RuleExplanation {
	e := RuleExplanation{Rule: rule.name, Limits: rule.limits}
	fail := func(err error) RuleExplanation {
		e.Why = err.Error()
		if of.Err == nil {
			of.Err = fmt.Errorf("rule %s: %w", rule.name, err)
		}
		return e
	}
	if len(rule.tiers) > 0 {
		name, err := rule.tierOf(q, s.options)
		if err != nil {
			return fail(err)
		}
		e.Tier = name
		for _, t := range rule.tiers {
			if t.name == name {
				e.Limits = t.limits
			}
		}
		if len(e.Limits) == 0 {
			e.Why = "the tier is unlimited"
			return e
		}
	}
	key, err := rule.identify(nil, q)
	switch {
	case err == core.SkipRule: //nolint:errorlint // identify returns it as it is
		e.Why = "the request has no " + shorten(rule.key.text)
	case err != nil:
		return fail(err)
	default:
		e.Applies, e.Key = true, string(key)
	}
	return e
}

// Words describes a limit in a sentence's words: "at most 3 in 6s, from the
// first request of a key on".
func Words(l core.Limit) string {
	per := fmt.Sprintf("at most %d in %s, ", l.Quota, shortWindow(l.Window))
	if l.Quota == 0 {
		return "none at all"
	}
	switch {
	case l.Algorithm == core.FixedWindow && l.Aligned:
		return per + "each window from a multiple of its length on"
	case l.Algorithm == core.FixedWindow:
		return per + "from the first request of a key on"
	case l.Algorithm == core.SlidingWindow:
		return per + "at any time, the window before weighed by what is left of it"
	case l.Algorithm == core.BucketedWindow:
		return per + "at any time, forgotten in steps of " + shortWindow(l.Precision)
	case l.Algorithm == core.SlidingLog:
		return per + "at any time, exactly"
	}
	burst := l.Burst
	if burst == 0 {
		burst = l.Quota
	}
	return fmt.Sprintf("%d at once, and one more every %s", burst, shortWindow(l.Window/time.Duration(l.Quota)))
}

// shortWindow writes a length of time without its zeros: 1h30m, not 1h30m0s.
func shortWindow(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
